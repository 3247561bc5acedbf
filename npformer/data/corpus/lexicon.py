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
    rabbit   | lapin      | m | s
    donkey   | âne        | m | s
    owl      | hibou      | m | s
    hedgehog | hérisson   | m
    cow      | vache      | f | s
    goat     | chèvre     | f | s
    turtle   | tortue     | f | s
    mouse    | souris     | f
    hen      | poule      | f | s
    goose    | oie        | f
    frog     | grenouille | f
    ant      | fourmi     | f
""")

MACHINES = nouns("""
    truck     | camion   | m | s
    tractor   | tracteur | m | s
    robot     | robot    | m | s
    car       | voiture  | f | s
    machine   | machine  | f | s
    motorbike | moto     | f | s
""")

GROUNDS = nouns("""
    bridge    | pont     | m | s
    field     | champ    | m | s
    garden    | jardin   | m | s
    park      | parc     | m | s
    path      | chemin   | m | s
    tunnel    | tunnel   | m | s
    stream    | ruisseau | m | s
    lake      | lac      | m | s
    wall      | mur      | m | s
    rock      | rocher   | m | s
    street    | rue      | f | s
    road      | route    | f | s
    river     | rivière  | f | s
    forest    | forêt    | f | s
    square    | place    | f | s
    beach     | plage    | f | s
    avenue    | avenue   | f | s
    courtyard | cour     | f
    cave      | grotte   | f | s
    hill      | colline  | f | s
    mountain  | montagne | f | s
    fence     | barrière | f
""")

BUILDINGS = nouns("""
    house    | maison  | f | s
    school   | école   | f | s
    station  | gare    | f | s
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

# The columns: see entries.verbs. The forms of the present follow je, il, nous and ils.
VERBS = verbs("""
    like      | liked    | aime aime aimons aiment                     | aimé     | aimer
    eat       | ate      | mange mange mangeons mangent                | mangé    | manger
    drink     | drank    | bois boit buvons boivent                    | bu       | boire
    see       | saw      | vois voit voyons voient                     | vu       | voir
    buy       | bought   | achète achète achetons achètent             | acheté   | acheter
    find      | found    | trouve trouve trouvons trouvent             | trouvé   | trouver
    look for  | looked   | cherche cherche cherchons cherchent         | cherché  | chercher
    have      | had      | ai a avons ont                              | eu       | avoir
    go to     | went     | vais va allons vont                         | allé     | aller     | à
    arrive at | arrived  | arrive arrive arrivons arrivent             | arrivé   | arriver   | à
    stay near | stayed   | reste reste restons restent                 | resté    | rester    | près de
    stay at   | stayed   | reste reste restons restent                 | resté    | rester    | à
    cross     | crossed  | traverse traverse traversons traversent     | traversé | traverser
    avoid     | avoided  | évite évite évitons évitent                 | évité    | éviter
    leave     | left     | quitte quitte quittons quittent             | quitté   | quitter
    enter     | entered  | entre entre entrons entrent                 | entré    | entrer    | dans
    follow    | followed | suis suit suivons suivent                   | suivi    | suivre
    climb     | climbed  | escalade escalade escaladons escaladent     | escaladé | escalader
    take      | took     | prends prend prenons prennent               | pris     | prendre
    walk to   | walked   | marche marche marchons marchent             | marché   | marcher   | jusque à
    run to    | ran      | cours court courons courent                 | couru    | courir    | jusque à
    wait near | waited   | attends attend attendons attendent          | attendu  | attendre  | près de
    reach     | reached  | atteins atteint atteignons atteignent       | atteint  | atteindre
""")

# Verbs that another verb follows: she wanted to cross, elle a voulu traverser.
MODALS = verbs("""
    want to     | wanted | veux veut voulons veulent       | voulu  | vouloir
    have to     | had    | dois doit devons doivent        | dû     | devoir
    try to      | tried  | essaie essaie essayons essaient | essayé | essayer | de
    can         | could  | peux peut pouvons peuvent       | pu     | pouvoir
    be going to | was    | vais va allons vont             | allé   | aller
""")

# Verbs that a sentence follows: she said that, elle a dit que.
VERBS_OF_SPEECH = verbs("""
    say that   | said    | dis dit disons disent         | dit   | dire   | que
    think that | thought | pense pense pensons pensent   | pensé | penser | que
    know that  | knew    | sais sait savons savent       | su    | savoir | que
""")


def _base_forms() -> dict[str, str]:
    """Return the dictionary form of every plural and every verb form."""
    tables = (PEOPLE, TRADES, ANIMALS, MACHINES, GROUNDS, BUILDINGS, THINGS)
    forms = {english.plural(n.english): n.english for table in tables for n in table.values()}
    for verb in (VERBS | MODALS | VERBS_OF_SPEECH).values():
        forms[verb.past] = verb.english
        forms[english.third_person(verb.english)] = verb.english
    return forms | {"crossing": "cross"}


_BASE_FORMS = _base_forms()


def base_form(word: str) -> str:
    """Return the dictionary form of a word: cats gives cat, found gives find, cat gives cat."""
    return _BASE_FORMS.get(word, word)
