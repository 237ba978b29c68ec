"""A table between its marks in a LaTeX file: nothing else of the file changes, and what is no such file is said."""

import os

import pytest

from fltrain.evidence.latex_file import put_table
from niidpart.errors import FileFault, UsageError

MARKS = "%% begin fltrain table: main\n%% end fltrain table: main\n"
PAPER = (
    "\\documentclass{article}\n\\usepackage[T1]{fontenc}\n\\usepackage{array,booktabs}\n"
    f"\\begin{{document}}\nBefore, 5 \\% é.\n{MARKS}After.\n\\end{{document}}\n"
)
TABLE = "% a caption\n\\begin{tabular}{l}\na \\\\\n\\end{tabular}"


def write(folder, text, encoding="utf-8"):
    path = folder / "paper.tex"
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_a_table_takes_the_place_between_its_marks_and_all_else_stays(tmp_path, line_end, encoding):
    text = PAPER.replace("\n", line_end)
    path = write(tmp_path, text, encoding)
    os.chmod(path, 0o640)
    assert put_table(path, "main", "an older one\nof two lines")
    assert put_table(path, "main", TABLE)
    between = TABLE.replace("\n", line_end) + line_end
    begin, end = MARKS.replace("\n", line_end).splitlines(keepends=True)
    wanted = text.replace(begin + end, begin + between + end)
    assert path.read_bytes() == wanted.encode(encoding)
    assert path.stat().st_mode & 0o777 == 0o640
    written = path.stat().st_mtime_ns
    assert not put_table(path, "main", TABLE)  # whatever watches the file has nothing to do
    assert path.stat().st_mtime_ns == written


def test_several_tables_have_their_own_places_and_a_mark_may_stand_aside(tmp_path):
    # a part of a document loads no packages, and its last line may have no end
    part = f"{MARKS}\\input{{x}}\n\t%%  begin fltrain table:  my study \n old\n%% end fltrain table: my study"
    path = write(tmp_path, part)
    put_table(path, "my study", "% begin fltrain table: main")  # what a table says is no mark
    assert put_table(path, "main", "first")
    lines = path.read_text().split("\n")
    assert lines[1] == "first"
    assert lines[5:7] == ["% begin fltrain table: main", "%% end fltrain table: my study"]
    assert put_table(path, "my study", "second")


def test_what_fails_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = write(tmp_path, PAPER)

    def refuse(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("niidpart.files.os.fsync", refuse)
    with pytest.raises(OSError, match="what stood there before is unchanged"):
        put_table(path, "main", TABLE)
    assert path.read_text() == PAPER
    assert [one.name for one in tmp_path.iterdir()] == ["paper.tex"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"%PDF-1.7\n\\begin", "is no LaTeX but a PDF; the table goes into a LaTeX file that has"),
        (b"PK\x03\x04\\begin", "but a zip archive, as .docx and .odt are"),
        (b"\x89HDF\r\n", "but an HDF5 file"),
        ("\\begin".encode("utf-16"), "but a text in UTF-16"),
        (b"\\begin\0", "but a binary file"),
        (b"", "but an empty file"),
        (b" \n# Results\n", r"without \\documentclass, \\begin or marks, which begins with '# Res"),
        (b"\\begin{document}", "no marks of the table 'main'; paste these two lines"),
        (MARKS.replace("main", "other").encode(), r"\(it has marks of: other\)"),
        (MARKS[:29].encode(), "begin in line 1; both are needed"),
        (2 * MARKS.encode(), "begin in line 3, end in line 4; leave one pair, or give each table"),
        ("\n".join(reversed(MARKS.splitlines())).encode(), "the one that begins comes first"),
        (
            MARKS.replace("\n", "\n%% end fltrain table: b\n", 1).encode(),
            "mark of the table 'b' in line 2, between those of 'main' in lines 1 and 3",
        ),
        (
            PAPER.replace("\\usepackage{array,booktabs}", "% \\usepackage{booktabs}").encode(),
            r"does not load booktabs.*below \\documentclass:\n\\usepackage\{booktabs\}",
        ),
    ],
)
def test_what_is_no_place_for_a_table_says_what_came_and_what_to_do(tmp_path, data, said):
    path = tmp_path / "paper.tex"
    path.write_bytes(data)
    with pytest.raises(FileFault, match=said):
        put_table(path, "main", TABLE)
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    "loads",
    [
        "\\usepackage [x] { array, booktabs }",
        "\\RequirePackage{booktabs}",
        "\\input{preamble}",  # where it may be loaded
    ],
)
def test_booktabs_is_loaded_in_several_ways(tmp_path, loads):
    path = write(tmp_path, PAPER.replace("\\usepackage{array,booktabs}", loads))
    assert put_table(path, "main", TABLE)


@pytest.mark.parametrize("letters", ["latin-1", "declared"])
def test_a_letter_that_the_file_cannot_have_is_refused(tmp_path, letters):
    declares = PAPER.replace("[T1]{fontenc}", "[latin1]{inputenc}").replace("é", "e")
    path = write(tmp_path, PAPER, letters) if letters == "latin-1" else write(tmp_path, declares)
    with pytest.raises(UsageError, match=r"the table has .ü., and .* is not written in UTF-8"):
        put_table(path, "main", "ü")
    assert put_table(path, "main", "ue")


@pytest.mark.parametrize("name", ["", " a", "a\nb", "a  b", "a\u202eb"])
def test_a_name_that_no_line_can_have_is_refused(tmp_path, name):
    with pytest.raises(UsageError, match="give a name in one line, such as --mark main"):
        put_table(write(tmp_path, PAPER), name, TABLE)


def test_a_file_that_is_not_there_is_said_with_the_lines_it_needs(tmp_path):
    with pytest.raises(UsageError, match=r"is not there; .*two marks:\n%% begin fltrain table: a"):
        put_table(tmp_path / "none.tex", "a", TABLE)
    with pytest.raises(FileFault, match="is no regular file"):
        put_table(tmp_path, "a", TABLE)
