"""The limits of docs/format.md: a file may not ask for what a split never needs.

Bytes, unless said otherwise.
"""

MAX_FILE = 4 << 30
MAX_MEMORY = 16 << 30  # what all data sets together declare
MAX_OBJECTS, MAX_DEPTH = 4096, 4  # of groups and data sets
MAX_ATTRIBUTES = 16  # of one object; nobody reads them
MAX_HEADER = 1 << 20  # of one object
MAX_TEXT = 256  # of one string in an array
INFLATE, SLACK = 1100, 1 << 16  # deflate cannot do more than 1032 : 1
MAX_CHUNK = 64 << 20  # inflated
MAX_CHUNKS = 1 << 16  # in the whole file

MAX_MANIFEST, MAX_HINT, MAX_SKEW = 4 << 20, 64 << 10, 1 << 20
MAX_NESTING = 8  # of JSON
MAX_EXAMPLES = 1 << 40  # of the data set
MAX_CLASS_NAME = 1024  # characters
MAX_TRANSFORMS = 16  # of a recipe

MAX_DRAWS, MAX_COLUMNS = 64, 256  # of them
# A draw has at most DRAW_FACTOR * (rows held + P * K) + DRAW_FLOOR values.
DRAW_FACTOR, DRAW_FLOOR = 16, 1 << 20

# For an untrusted file, unless its reader says otherwise: bytes and seconds.
UNTRUSTED_MEMORY, UNTRUSTED_TIME = 2 << 30, 60.0
