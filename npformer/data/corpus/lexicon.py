"""The words of the grammar: nouns, adjectives and verbs, in English and French.

The word bank, and the words that decide its sense, are in bank_clues.py.
"""

from npformer.data.corpus import english
from npformer.data.corpus.entries import adjectives, nouns, verbs

PEOPLE = nouns("""
    man    | homme  | m | s
    woman  | femme  | f | s
    boy    | garçon | m | s
    girl   | fille  | f | s
    brother | frère | m
    sister | sœur   | f
    doctor | médecin | m
""")

# French uses trades without an article: je suis étudiant.
TRADES = nouns("""
    student | étudiant   | m | s
    teacher | professeur | m | s
    farmer  | fermier    | m | s
""")

# The English pronoun for each of these is it.
ANIMALS = nouns("""
    animal   | animal     | m | s
    dog      | chien      | m | s
    cat      | chat       | m | s
    horse    | cheval     | m | s
    rabbit   | lapin      | m
    donkey   | âne        | m
    owl      | hibou      | m | s
    hedgehog | hérisson   | m
    cow      | vache      | f | s
    goat     | chèvre     | f | s
    turtle   | tortue     | f
    mouse    | souris     | f
    hen      | poule      | f | s
    goose    | oie        | f
    frog     | grenouille | f
    ant      | fourmi     | f
""")

MACHINES = nouns("""
    truck     | camion   | m
    tractor   | tracteur | m
    robot     | robot    | m
    car       | voiture  | f | s
    machine   | machine  | f | s
    motorbike | moto     | f
""")

GROUNDS = nouns("""
    bridge    | pont     | m
    field     | champ    | m
    garden    | jardin   | m
    park      | parc     | m
    path      | chemin   | m
    tunnel    | tunnel   | m
    stream    | ruisseau | m
    lake      | lac      | m
    wall      | mur      | m
    rock      | rocher   | m
    street    | rue      | f
    road      | route    | f
    river     | rivière  | f
    forest    | forêt    | f
    square    | place    | f
    beach     | plage    | f
    avenue    | avenue   | f
    courtyard | cour     | f
    cave      | grotte   | f
    hill      | colline  | f
    mountain  | montagne | f
    fence     | barrière | f
""")

BUILDINGS = nouns("""
    house    | maison  | f | s
    school   | école   | f | s
    station  | gare    | f
    market   | marché  | m
    hotel    | hôtel   | m | s
    hospital | hôpital | m
    village  | village | m
    town     | ville   | f
""")

THINGS = nouns("""
    table  | table   | f
    door   | porte   | f | s
    window | fenêtre | f | s
    key    | clé     | f | s
    book   | livre   | m | s
    letter | lettre  | f
    hat    | chapeau | m | s
    flower | fleur   | f | s
    tree   | arbre   | m | s
    boat   | bateau  | m | s
""")

FOOD = nouns("""
    bread  | pain    | m
    cheese | fromage | m
    soup   | soupe   | f
    meat   | viande  | f
""")

DRINKS = nouns("""
    water | eau  | f
    milk  | lait | m
    tea   | thé  | m
""")

# Adjectives that stand with a noun.
QUALITIES = adjectives("""
    big       | grand   | before
    small     | petit   | before
    beautiful | beau    | before
    old       | vieux   | before
    new       | nouveau | before
    young     | jeune   | before
    long      | long    | before
    red       | rouge
    white     | blanc
    black     | noir
""")

# Adjectives that stand after the verb to be: of people and animals, and of food and drink.
MOODS = adjectives("""
    tired | fatigué
    ill   | malade
    happy | heureux
    sad   | triste
""")

TEMPERATURES = adjectives("""
    hot  | chaud
    cold | froid
""")

# Adjectives that fit animals and no place.
ANIMAL_STATES = adjectives("""
    tired    | fatigué
    hungry   | affamé
    scared   | effrayé
    ill      | malade
    injured  | blessé
    young    | jeune
    shy      | timide
    nervous  | nerveux
    lazy     | paresseux
    cautious | prudent
    slow     | lent
""")

# Adjectives that fit machines and no place.
MACHINE_STATES = adjectives("""
    slow       | lent
    heavy      | lourd
    overloaded | surchargé
""")

# Adjectives that fit places, and no animal in these sentences.
PLACE_STATES = adjectives("""
    wide     | large
    long     | long
    narrow   | étroit
    deep     | profond
    steep    | escarpé
    high     | haut
    deserted | désert
    slippery | glissant
    flooded  | inondé
    crowded  | bondé
    closed   | fermé
""")

# Adjectives without degrees: French does not say "très bondé".
WITHOUT_DEGREE = frozenset({"injured", "overloaded", "flooded", "crowded", "deserted", "closed"})

VERBS = verbs("""
    like     | liked  | aime aime aimons aiment               | aimé
    eat      | ate    | mange mange mangeons mangent          | mangé
    drink    | drank  | bois boit buvons boivent              | bu
    see      | saw    | vois voit voyons voient               | vu
    buy      | bought | achète achète achetons achètent       | acheté
    find     | found  | trouve trouve trouvons trouvent       | trouvé
    look for | looked | cherche cherche cherchons cherchent   | cherché
    have     | had    | ai a avons ont                        | eu
    go to    | went   | vais va allons vont                   | allé    | à
    arrive at | arrived | arrive arrive arrivons arrivent     | arrivé  | à
    stay near | stayed | reste reste restons restent          | resté   | près de
    stay at  | stayed | reste reste restons restent           | resté   | à
    cross    | crossed  | traverse                            | traversé
    avoid    | avoided  | évite                               | évité
    leave    | left     | quitte                              | quitté
    enter    | entered  | entre                               | entré   | dans
    follow   | followed | suit                                | suivi
    climb    | climbed  | escalade                            | escaladé
    take     | took     | prend                               | pris
    walk to  | walked   | marche                              | marché  | jusque à
    run to   | ran      | court                               | couru   | jusque à
    wait near | waited  | attend                              | attendu | près de
    reach    | reached  | atteint                             | atteint
""")


def _base_forms() -> dict[str, str]:
    """Return the dictionary form of every plural and every verb form."""
    tables = (PEOPLE, TRADES, ANIMALS, MACHINES, GROUNDS, BUILDINGS, THINGS)
    forms = {english.plural(n.english): n.english for table in tables for n in table.values()}
    for verb in VERBS.values():
        forms[verb.past] = verb.english
        forms[english.third_person(verb.english)] = verb.english
    return forms | {"crossing": "cross"}


_BASE_FORMS = _base_forms()


def base_form(word: str) -> str:
    """Return the dictionary form of a word: cats gives cat, found gives find, cat gives cat."""
    return _BASE_FORMS.get(word, word)
