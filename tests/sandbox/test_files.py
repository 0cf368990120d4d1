"""Files of a sandbox: what the test sees of them, and links that lead nowhere."""

from __future__ import annotations

import pytest

from pytest_crashlab.sandbox import removing, sandbox
from pytest_crashlab.sandbox.base import FileMissing, LinkRefused, NotJson, PathRefused
from pytest_crashlab.sandbox.limits import Limits
from pytest_crashlab.sandbox.sandbox import Sandbox


def test_files_go_both_ways(box, tmp_path):
    box.write("a/b.json", '{"x": 1}')
    box.write_file("tool", b"#!/bin/sh\necho ran", executable=True)
    assert box.read_json("a/b.json") == {"x": 1}
    assert box.run(["./tool"]).stdout == "ran\n"
    assert box.run(["cat", "b.json"], cwd="a").stdout == '{"x": 1}'
    assert box.files() == ["a/b.json", "tool"]
    (tmp_path / "up" / "deep").mkdir(parents=True)
    (tmp_path / "up" / "deep" / "f").write_text("up")
    box.upload(tmp_path / "up", "there")
    box.download("there", tmp_path / "down")
    assert (tmp_path / "down" / "deep" / "f").read_text() == "up"
    box.download("tool", tmp_path / "one")
    assert (tmp_path / "one").read_bytes() == b"#!/bin/sh\necho ran"


def test_changed_is_what_the_target_did(box):
    box.write("kept", "1")
    box.write("altered", "1")
    box.write("removed", "1")
    assert box.changed() == set()
    box.run(["sh", "-c", "cat kept; echo 2 > altered; rm removed; mkdir -p d; echo 3 > d/made"], check=True)
    assert box.changed() == {"altered", "removed", "d/made"}
    assert box.snapshot("altered", "removed") == {"altered": "2\n"}
    assert set(box.snapshot()) == {"kept", "altered", "d/made"}
    box.write("altered", "mine again")
    assert box.changed() == {"removed", "d/made"}


def test_the_target_may_replace_and_remove_what_the_test_wrote(box):
    box.write("d/f", "1")
    assert box.run(["sh", "-c", "echo 2 >> d/f && mv d e && rm e/f && rmdir e"]).ok


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "..", "a\0b"])
def test_a_path_that_leads_out_is_refused(box, tmp_path, path):
    for use in (box.read, lambda p: box.write(p, "x"), lambda p: box.download(p, tmp_path / "x")):
        with pytest.raises(PathRefused, match="leads out of the sandbox"):
            use(path)
    with pytest.raises(PathRefused):
        box.run(["true"], cwd=path)


def test_links_of_the_target_lead_nowhere(box, tmp_path):
    (tmp_path / "secret").write_text("of the host")
    plant = f"ln -s {tmp_path} dir; ln -s {tmp_path}/secret file; mkfifo pipe; mkdir d; ln -s / d/root"
    box.run(["sh", "-c", plant], check=True)
    for path in ("file", "dir/secret", "pipe", "d/root/etc/hostname"):
        with pytest.raises(LinkRefused) as caught:
            box.read(path)
        assert isinstance(caught.value, AssertionError)
    for path in ("file", "dir", "d", "."):
        with pytest.raises(LinkRefused):
            box.download(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(LinkRefused):
        box.write("dir/secret", "overwritten")
    box.write("file", "replaced the link")
    assert box.read("file") == "replaced the link"
    assert (tmp_path / "secret").read_text() == "of the host"
    assert box.changed() == {"dir", "pipe", "d/root"}
    assert box.snapshot("dir") == {"dir": "(LinkRefused)"}


def test_what_is_missing_or_no_json_speaks_of_the_target(box):
    with pytest.raises(FileMissing, match=r"'orders\.json' is not in the sandbox") as missing:
        box.read_json("orders.json")
    assert isinstance(missing.value, FileNotFoundError | AssertionError)
    box.write("orders.json", "{")
    with pytest.raises(NotJson, match="is no JSON"):
        box.read_json("orders.json")


DIG = "import os\nfor i in range(1500): os.mkdir('d'); os.chdir('d')\nopen('leaf', 'w').write('x')"


def test_however_deep_the_target_digs_its_files_are_listed_and_removed(backend, tmp_path):
    box = Sandbox(backend, Limits(wall_clock=20))
    box.write("kept", "1")
    box.run(["python3", "-c", DIG], check=True)
    assert len(box.files()) == 2  # one of them the folder that is too deep to be looked into
    (deep,) = box.changed()
    assert box.snapshot(deep) == {deep: "(LinkRefused)"}
    with pytest.raises(LinkRefused):
        box.download(".", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    workspace = box._box.workspace
    box.close()
    assert not workspace.exists()


def test_removing_follows_no_link_and_takes_whatever_modes_there_are(tmp_path):
    inside = tmp_path / "inside"
    (inside / "a" / "b").mkdir(parents=True)
    (inside / "a" / "b" / "f").write_text("x")
    (inside / "a" / "out").symlink_to(tmp_path)
    (tmp_path / "outside").write_text("kept")
    (inside / "a").chmod(0)
    removing.remove(inside)
    assert [entry.name for entry in tmp_path.iterdir()] == ["outside"]
    removing.remove(inside)
    (tmp_path / "link").symlink_to(tmp_path)
    removing.remove(tmp_path / "link")
    assert (tmp_path / "outside").exists()


def test_a_folder_in_a_files_place_speaks_of_the_target(box):
    box.write("answer.json", "{}")
    box.run(["sh", "-c", "rm answer.json && mkdir answer.json"], check=True)
    for use in (box.read_json, lambda path: box.write(path, "x")):
        with pytest.raises(LinkRefused, match=r"'answer\.json' in the sandbox is "):
            use("answer.json")
    assert box.changed() == {"answer.json"}
    with pytest.raises(PathRefused, match="too long a name"):
        box.read("a" * 300)


def test_files_that_are_large_on_paper_only_fill_neither_memory_nor_disk(box, tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "_READ_IN_ALL", 1 << 20)
    box.run(["sh", "-c", "for i in 1 2 3; do truncate -s 200M f$i; done; truncate -s 90k small"], check=True)
    assert box.changed() == {"f1", "f2", "f3", "small"}
    seen = box.snapshot()
    assert seen["f1"] == f"({200 << 20} bytes, not read)"
    assert seen["small"].startswith("sha256:")
    with pytest.raises(LinkRefused, match="holds more than its disk may"):
        box.download(".", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_snapshot_keeps_a_bounded_amount_of_text(box, monkeypatch):
    monkeypatch.setattr(sandbox, "_SHOWN_IN_ALL", 10)
    for name in "ab":
        box.write(name, "8 bytes.")
    assert sorted(text[:7] for text in box.snapshot().values()) == ["8 bytes", "sha256:"]
