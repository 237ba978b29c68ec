"""`niidpart data list`: what is known, where it is looked for, what is found."""


def test_all_that_is_known_with_licence_place_and_command(niidpart, tmp_path):
    done = niidpart("data", "list", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "digits (always there)" in done.stdout
    assert "heart-disease (not looked for)" in done.stdout
    assert "get it with: niidpart data get mnist-writers --root DIR" in done.stdout
    assert "licence: none stated" in done.stdout
    assert "niidpart data list --root DIR says which of them lie there" in done.stdout


def test_one_that_lies_there_is_found(niidpart, tmp_path):
    (tmp_path / "usps").write_bytes(b"")
    (tmp_path / "usps.t.bz2").write_bytes(b"")
    done = niidpart("data", "list", "usps", "--root", ".", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "usps (found)" in done.stdout
    assert "found: usps, usps.t.bz2" in done.stdout
    assert "get it with" not in done.stdout


def test_a_name_that_is_none_is_told_the_nearest(niidpart, tmp_path):
    done = niidpart("data", "list", "heart-diseas", cwd=tmp_path)
    assert done.returncode == 2
    assert "did you mean 'heart-disease'" in done.stderr
