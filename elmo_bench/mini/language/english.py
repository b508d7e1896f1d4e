"""The English part of the vocabulary: closed-class words with their tags, and tables that are easy to extend.

A word in two groups of nouns, or among both nouns and verbs, is ambiguous, and its occurrences are labelled with their
sense. The first words of a row are the most frequent.
"""

from __future__ import annotations

# Penn Treebank tags of the function words that the grammar uses.
TAGS = {
    word: tag
    for tag, words in {
        "DT": "the a this that some",
        "IN": "in on at of for from with by about as near after before because although when during like",
        "TO": "to",
        "CC": "and but or",
        "MD": "will may must could",
        "WP": "who",
        "WDT": "which",
        "WRB": "where when",
        "RB": "not often",
        "POS": "'s",
        "VBD": "was were did",
        "VBZ": "is does has",
        "VBP": "are do have am",
        "VB": "be",
        "VBN": "been",
        "VBG": "being",
        "NN": "kind",
        ",": ",",
        ".": ". ?",
    }.items()
    for word in words.split()
}

# class -> group (the hypernym of its nouns) -> nouns
NOUNS = {
    "person": {
        "worker": "cook baker smith miller tailor porter driver miner fisherman gardener plumber",
        "artist": "star painter singer poet pitcher sculptor dancer actor drummer juggler",
        "official": "judge mayor minister clerk inspector consul sheriff treasurer governor",
        "scholar": "teacher chemist student historian botanist linguist geologist librarian",
        "soldier": "guard scout captain archer pilot sergeant sentry colonel",
    },
    "place": {
        "settlement": "port village town city suburb hamlet colony district",
        "waterway": "bank spring river lake bay canal creek lagoon",
        "building": "court mill castle tower chapel barn station palace",
        "terrain": "valley hill forest meadow island desert plateau swamp",
    },
    "org": {
        "company": "bank plant brewery shipyard railway publisher foundry airline",
        "institution": "court college museum hospital library academy theatre",
        "association": "union guild party league society order council",
        "team": "club side crew squad eleven",
    },
    "work": {
        "composition": "play record novel ballad opera symphony sonata",
        "vessel": "ship barge ferry yacht schooner cruiser",
        "celebration": "match fair festival carnival regatta parade",
    },
    "tool": {"tool": "saw bat hammer club crane press seal shovel drill ladder lantern"},
    "vehicle": {"vehicle": "train cart wagon bicycle truck sled tractor"},
    "food": {"dish": "port pie plum cake sausage apple biscuit pudding"},
    "container": {"container": "pitcher barrel basket bucket jar kettle crate"},
    "instrument": {"instrument": "organ fiddle drum flute harp bell"},
    "garment": {"garment": "coat hat scarf apron shawl boot"},
    "animal": {
        "beast": "bat seal goat dog horse mule donkey badger",
        "bird": "crane duck goose hawk sparrow heron",
    },
}
THING = ("tool", "vehicle", "food", "container", "instrument", "garment")

# class of the owner -> class of what it has -> nouns; they reveal the class of a name before or after them
RELATIONS = {
    "person": {
        "person": "wife husband brother sister daughter aunt uncle cousin widow rival",
        "thing": "diary portrait grave wedding career",
    },
    "place": {
        "person": "mayor governor bishop resident native defender",
        "thing": "skyline market climate outskirts harbour",
    },
    "org": {
        "person": "chairman founder accountant employee shareholder spokesman",
        "thing": "headquarters profit board merger budget",
    },
    "work": {
        "person": "author heroine organiser translator composer",
        "thing": "plot premiere sequel debut title",
    },
}
GENDERS = dict.fromkeys("wife sister daughter aunt widow heroine".split(), "female")
GENDERS |= dict.fromkeys("husband brother uncle fisherman chairman spokesman".split(), "male")

# name | subject | object | obliques (preposition/role:classes) | marks | verbs (invented ones are added)
# Marks: * an action, of which the first verb is the hypernym; ~ also allows "give him the cart".
FRAMES = """
rest     | ARG0:person,animal | | | * | rest sleep doze nap snooze slumber recline
move     | ARG0:person,animal | | | * | move run walk stroll march wander trot limp
laugh    | ARG0:person | | | * | laugh giggle chuckle grin cackle
eat      | ARG0:person,animal | ARG1:food | | * | eat nibble munch devour taste chew swallow
clean    | ARG0:person | ARG1:tool,vehicle,container,garment | | * | clean wash scrub polish rinse wipe dust
make     | ARG0:person | ARG1:tool,vehicle,container,garment | | * | make build carve assemble forge weave
carry    | ARG0:person | ARG1:container,tool,instrument | | * | carry haul drag lug lift push
break    | ARG0:person | ARG1:container,instrument,vehicle | | * | break smash crush snap crack wreck
play     | ARG0:person | ARG1:instrument | | * | play strum tune practise
watch    | ARG0:person,animal | ARG1:animal | | * | watch observe eye study
chase    | ARG0:person,animal | ARG1:animal | | * | chase hunt follow track pursue
go       | ARG1:person | | to/ARG4:place from/ARG3:place | | go return travel come hurry sail flee move
arrive   | ARG1:person | | in/ARG4:place from/ARG3:place | | arrive land settle appear disembark retire
visit    | ARG0:person | ARG1:place | | | visit explore cross tour reach govern leave photograph conquer
meet     | ARG0:person | ARG1:person | | | meet marry thank greet hug fight judge guard kiss nurse
accuse   | ARG0:person,org | ARG1:person | of/ARG2:thing | | rob cheat suspect strip deprive
blame    | ARG0:person,org | ARG1:person | for/ARG2:thing | | blame fine praise scold reward
tell     | ARG0:person | ARG2:person | about/ARG1:person,org,place,work | | tell warn remind ask question inform
join     | ARG0:person | ARG1:org | | | join found lead quit advise chair manage
work     | ARG0:person | | for/ARG2:org | | work campaign toil lobby volunteer
write    | ARG0:person | ARG1:work | | | write perform compose record finish design rehearse attend
give     | ARG0:person,org | ARG1:thing | to/ARG2:person | ~ | give hand lend sell send offer
buy      | ARG0:person,org | ARG1:thing | from/ARG2:person,org | | buy borrow steal obtain collect rent
put      | ARG0:person | ARG1:thing | in/ARG2:container,building | | put hide store bury lock stack
hire     | ARG0:org | ARG1:person | as/ARG2:role | | hire appoint recruit elect train employ dismiss
acquire  | ARG0:org | ARG1:org | | | acquire sue outbid absorb audit bankrupt
supply   | ARG0:org | ARG1:thing | to/ARG2:place | | supply export ship deliver transport
launch   | ARG0:org | ARG1:work | | | launch sponsor publish insure cancel fund
serve    | ARG0:org | ARG1:place | | | serve rebuild pollute connect evacuate irrigate
collapse | ARG1:org | | | | collapse expand merge prosper dissolve diversify
flood    | ARG1:place | | | | flood freeze burn flourish shrink surrender
rattle   | ARG1:thing | | | | rattle rust wobble leak vanish
border   | ARG1:place | ARG2:place | | | border adjoin overlook face
host     | ARG0:place | ARG1:work | | | host celebrate welcome stage
premiere | ARG1:work | | | | premiere open flop sink
inspire  | ARG0:work | ARG1:person | | | inspire delight bore puzzle frighten move
beat     | ARG0:team | ARG1:team | | | beat thrash defeat outplay
name     | ARG0:person,org | ARG1:person,org,place,work | | | mention discuss remember criticise honour describe
bite     | ARG0:animal | ARG1:person | | | bite attack scratch kick duck
fear     | ARG0:person | ARG1:person,org,place,work,animal | | | fear love hate miss trust
"""
SPEECH_VERBS = "say claim report announce admit insist argue reply"
CONTROL_VERBS = "want try plan hope refuse promise decide"
PRICE_VERBS = "rise fall climb drop"

# The adjectives of a group exclude one another.
ADJECTIVES = {
    "colour": "red blue green yellow white black brown grey",
    "age": "young old",
    "size": "big small",
    "state": "wet dry",
    "mood": "happy sad angry calm",
}
# Which adjectives a noun of a class takes.
MODIFIERS = {
    "person": ("age", "mood"),
    "animal": ("colour", "size", "mood"),
    "thing": ("colour", "size", "state"),
    "place": ("size", "state"),
    "org": ("size",),
    "work": ("size", "age"),
}
MANNERS = "quick quiet secret careful proud slow sudden eager brave clumsy"

TITLES = {"female": "Mrs. Ms. Dr. Professor".split(), "male": "Mr. Dr. Professor".split()}
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
NUMBERS = "two three four five six seven eight nine".split()
# Capitalised, these are names too; at the start of a sentence only the context can tell.
NAME_WORDS = (
    "Rose Mark Grant Reed Stone Banks March May Wells Field Bush Page Marsh Ford Hill Brook Wood Lane Frost Snow Bell "
    "Carter Mason Cook Fisher Hunter Miller Baker Smith Potter Swift Singer Bishop Judge Hope Summers Park Rivers Crane"
).split()
# Patterns around a base name; the name of a person is a given name and a surname.
PLACE_NAMES = ("Lake {}", "Port {}", "New {}", "{} Valley", "{} Bay", "Upper {}")
ORG_NAMES = ("{} Bank", "{} College", "{} and Sons", "{} Motors", "{} United", "{} Society", "{} Press")
WORK_NAMES = ("{} Cup", "{} Prize", "{} Festival", "{} Sonata", "{} Star")
