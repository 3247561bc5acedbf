"""The small sentences that the lessons and the documents quote, all of them part of training."""

from npformer.data.corpus.pairs import Pair

_SENTENCES = """
thanks | merci
thinking machines | machines pensantes
a thinking machine | une machine pensante
i am a student | je suis étudiant
i am a teacher | je suis professeur
i am a farmer | je suis fermier
i am not a student | je ne suis pas étudiant
he is a student | il est étudiant
she is a student | elle est étudiante
she is a teacher | elle est professeure
we are students | nous sommes étudiants
they are teachers | ils sont professeurs
i am tired | je suis fatigué
she is happy | elle est heureuse
i like cats | j'aime les chats
i have a dog | j'ai un chien
the cat drinks some milk | le chat boit du lait
where is the station | où est la gare
thanks for the flowers | merci pour les fleurs
"""

# A sentence of one or two words teaches so little each time that training meets it more often.
COPIES = 8


def document_pairs() -> tuple[Pair, ...]:
    """Each of the small sentences once."""
    rows = (line.split(" | ") for line in _SENTENCES.strip().splitlines())
    return tuple(Pair(english, french, "document") for english, french in rows)
