"""`fltrain`: runs, what they say, and studies of many. One file a command."""

import click

from .advise import advise_command
from .algorithms import algorithms_command
from .features import features_command
from .figure import figure_command, plot_command
from .leaderboard import leaderboard_command
from .packed import pack_command
from .presets import presets_command
from .ranked import RankedProgram
from .report import report_command
from .resume import resume_command
from .run import run_command
from .study import study_command
from .table import compare_command, table_command
from .verify import verify_command
from .work import work_command

main = click.version_option(package_name="niidpart", prog_name="fltrain")(
    RankedProgram(
        "fltrain",
        help="Train federated algorithms on a split file of niidpart.",
        makers={
            "run": ("Train an algorithm on a split.", run_command),
            "resume": ("Go on with a run or a sweep.", resume_command),
            "verify": ("Check the digests of a run, and train rounds again.", verify_command),
            "features": ("What a trained model makes of examples.", features_command),
            "study": ("Train all cells of a plan.", study_command),
            "work": ("Work on a study, as one of its workers.", work_command),
            "table": ("A table of a study or of runs, with tests.", table_command),
            "advise": ("Which algorithm a split calls for.", advise_command),
            "figure": ("A figure of a study or of runs.", figure_command),
            "report": ("Write a page on a study or runs.", report_command),
            "pack": ("Write a study as one small file.", pack_command),
            "leaderboard": ("Entries that are study folders.", leaderboard_command),
            "compare": ("Is called table now.", compare_command),
            "plot": ("Is called figure curves now.", plot_command),
            "algorithms": ("List the algorithms.", algorithms_command),
            "presets": ("List the settings of papers.", presets_command),
        },
    )
)
