"""When this process forks: never while a thread of it is in the midst of a file."""

import threading

# Held while a worker is forked, and by a thread while it writes: what is forked has a copy of the
# process as it is then, and goes on without its threads. Runs of one process share it.
FORKING = threading.Lock()
