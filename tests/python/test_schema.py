"""The JSON Schema of the lab file, as two checkers of editors apply it to the first line of a lab."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
CHECKERS = {"taplo": ["lint"], "tombi": ["lint", "--offline"]}
# The second line is for tombi, which otherwise warns of every key that a part of the schema leaves to
# another part.
HEAD = "#:schema ../sanloom.schema.json\n#:tombi schema.strict = false\n"


@pytest.fixture
def judged(tmp_path, command):
    """Checks labs; returns the names of those that a checker refuses, and its output."""
    (tmp_path / "sanloom.schema.json").write_text(command("schema"))
    folder = tmp_path / "labs"
    folder.mkdir()

    def judge(checker, labs):
        for lab in labs:
            (folder / lab.name).write_text(HEAD + re.sub(r"\A#:schema .*\n", "", lab.read_text()))
        program = pathlib.Path(sys.executable).parent / checker
        refused, output = set(), ""
        found = sorted(folder.iterdir())
        # One call for all is enough if all pass.
        for labs in [found, *([lab] for lab in found)]:
            done = subprocess.run([program, *CHECKERS[checker], *labs], capture_output=True, text=True, cwd=tmp_path)
            if labs is found and done.returncode == 0:
                break
            if labs is not found and done.returncode != 0:
                refused.add(labs[0].name)
                output += done.stdout + done.stderr
        return refused, output

    return judge


@pytest.mark.parametrize("checker", CHECKERS)
def test_every_example_passes(judged, checker):
    labs = sorted((ROOT / "examples").glob("*.toml"))
    assert len(labs) > 90
    refused, output = judged(checker, labs)
    assert refused == set(), output


# Codes of mistakes that a schema can express.
EXPRESSIBLE = {"unknown-section", "unknown-key", "wrong-type", "missing-unit", "wrong-unit", "unknown-word"}


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_mistake_that_a_schema_can_express_is_found(judged, checker):
    def codes(lab):
        return set(re.findall(r"^# expect: \S+ (\S+)", lab.read_text(errors="replace"), re.MULTILINE))

    # The mistakes of `sets` are in overrides, not in the file.
    wrong = sorted(set((ROOT / "crates/lab/tests/it/bad").glob("*.toml")) - {ROOT / "crates/lab/tests/it/bad/sets.toml"})
    labs = [lab for lab in wrong if codes(lab) & EXPRESSIBLE]
    assert len(labs) > 10
    refused, _ = judged(checker, labs)
    assert {lab.name for lab in labs} == refused


@pytest.mark.parametrize("checker", CHECKERS)
def test_the_place_of_a_mistake_is_shown(judged, checker, tmp_path):
    lab = tmp_path / "lab.toml"
    lab.write_text('[lab]\nname = "x"\n[switch."edge{1,2}"]\nqueueng = "fifo"\n')
    refused, output = judged(checker, [lab])
    assert refused == {"lab.toml"}
    assert "queueng" in output and re.search(r"lab\.toml:6:1\b", re.sub(r"\x1b\[[0-9;]*m", "", output))
