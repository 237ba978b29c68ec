"""What the tests of compiled code share: where there is no compiler, they are skipped."""

import pytest

from fltrain.engine.native.build import find_compiler


def missing():
    try:
        find_compiler()
    except ValueError as error:
        return str(error)
    return ""


compiled = pytest.mark.skipif(bool(missing()), reason=missing() or "there is a compiler")
