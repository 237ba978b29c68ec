"""`python -m niidpart_cli.split`: the same as `niidpart`."""

from . import main

main()
