"""Files of a sandbox: what the test sees of them, and links that lead nowhere."""

from __future__ import annotations

import pytest

from pytest_crashlab.sandbox.base import FileMissing, LinkRefused, NotJson, PathRefused


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
