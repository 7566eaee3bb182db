"""The stubs, the guide and the notebook."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def passes(*arguments):
    done = subprocess.run([sys.executable, "-m", *map(str, arguments)], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_types_of_the_package_and_of_a_program_that_uses_it_are_right(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sanloom\n"
        "run: sanloom.Run = sanloom.Lab('lab.toml').set('run.seed', 1).run(progress=True)\n"
        "iops: float = run['totals.iops']\n"
        "names: list[str] = run.hosts.columns\n"
        "wrong: int = run.hosts  # type: ignore[assignment]\n"
    )
    config = ROOT / "crates/python/pyproject.toml"
    passes("mypy", "--config-file", config, "--warn-unused-ignores", "-p", "sanloom", "--cache-dir", tmp_path)
    passes("mypy", "--config-file", config, "--warn-unused-ignores", program, "--cache-dir", tmp_path)


def test_the_stubs_fit_the_compiled_part():
    passes("mypy.stubtest", "sanloom._sanloom")


def test_the_package_needs_no_other():
    code = "import sys, sanloom; sys.exit(any(name in sys.modules for name in ('numpy', 'pyarrow', 'pandas')))"
    done = subprocess.run([sys.executable, "-c", code])
    assert done.returncode == 0


def test_the_programs_of_the_guide_run(monkeypatch):
    monkeypatch.chdir(ROOT)
    guide = (ROOT / "docs/src/guides/python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    values = {}
    for block in blocks:
        exec(compile(block, "python.md", "exec"), values)


@pytest.mark.parametrize("notebook", sorted((ROOT / "crates/python/notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs_from_its_first_to_its_last_cell(notebook):
    import nbclient
    import nbformat

    cells = nbformat.read(notebook, as_version=4)
    folder = {"metadata": {"path": notebook.parent}}
    done = nbclient.NotebookClient(cells, timeout=120, kernel_name="python3", resources=folder).execute()
    kinds = {kind for cell in done.cells for output in cell.get("outputs", []) for kind in output.get("data", {})}
    assert {"image/png", "text/html"} <= kinds
