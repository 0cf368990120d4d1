from __future__ import annotations

import io
import json
import zipfile

import polars as pl
import pytest
from store_builders import plan_of, record, trial_row

from pytest_crashlab.errors import CorruptRun, FormatTooNew, StoreError
from pytest_crashlab.records.check import CheckRow
from pytest_crashlab.records.run import RunStatus
from pytest_crashlab.store import export
from pytest_crashlab.store.export import export_run, load_export
from pytest_crashlab.store.schema import Manifest


@pytest.fixture
def exported(store, tmp_path):
    run = record(store, {"a": ["passed", "failed"], "b": ["skipped", None]})
    return export_run(store, run.id, tmp_path / "main.crashrun")


def parts(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rebuilt(path, contents):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return path


def test_an_exported_run_is_the_run(store, tmp_path):
    writer = store.begin(Manifest(id="20261130T063300Z-k3v9q2", name="first"))
    writer.write_plan(plan_of("a", k=2))
    writer.append(trial_row("a", 1, t=3, message="ä"), [CheckRow(name="c", required=True, ok=False)])
    writer.seal(RunStatus.COMPLETED)
    path = export_run(store, writer.run_id, tmp_path / "one.crashrun")
    there, here = load_export(path), store.load(writer.run_id)
    assert there.manifest == here.manifest
    for table in ("cases", "trials", "checks"):
        assert getattr(there, table).equals(getattr(here, table))
        assert getattr(there, table).schema == getattr(here, table).schema


def test_the_same_run_gives_the_same_small_file(store, tmp_path):
    run = record(
        store, {f"tests/test_refunds.py::test_refund[order-{n}]": ["passed"] * 5 for n in range(200)}
    )
    first = export_run(store, run.id, tmp_path / "1.crashrun").read_bytes()
    assert export_run(store, run.id, tmp_path / "2.crashrun").read_bytes() == first
    assert len(first) < 40_000


def test_evidence_is_left_out_unless_asked_for(store, tmp_path):
    run = record(store, {"a": ["passed"]})
    store.paths.run(run.id).evidence.write_bytes(b"an input, an output")
    assert "evidence.db" not in parts(export_run(store, run.id, tmp_path / "1.crashrun"))
    path = export_run(store, run.id, tmp_path / "2.crashrun", evidence=True)
    assert parts(path)["evidence.db"] == b"an input, an output"
    assert load_export(path).trials.height == 1


def test_a_run_that_has_not_ended_is_not_exported(store, tmp_path):
    store.begin(Manifest(id="20261130T063300Z-k3v9q2")).close()
    with pytest.raises(StoreError, match="has not ended; 'crashlab recover"):
        export_run(store, "20261130T063300Z-k3v9q2", tmp_path / "x.crashrun")
    assert list(tmp_path.glob("*.crashrun")) == []


def test_a_place_that_cannot_be_written_is_said_so(store, tmp_path):
    run = record(store, {"a": ["passed"]})
    with pytest.raises(StoreError, match="cannot be written"):
        export_run(store, run.id, tmp_path / "none" / "x.crashrun")


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 and no more", b"PAR1"])
def test_a_file_that_is_no_export_is_refused(tmp_path, content):
    path = tmp_path / "x.crashrun"
    path.write_bytes(content)
    with pytest.raises(CorruptRun, match="is no exported run"):
        load_export(path)


def test_a_file_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(StoreError, match=r"none\.crashrun cannot be read \(No such file"):
        load_export(tmp_path / "none.crashrun")


def test_a_cut_file_is_refused(exported):
    exported.write_bytes(exported.read_bytes()[:-200])
    with pytest.raises(CorruptRun, match="is no exported run"):
        load_export(exported)


def test_a_changed_byte_is_noticed_or_harmless(exported):
    sound = exported.read_bytes()
    rows = load_export(exported).trials.rows()
    noticed = 0
    for position in range(0, len(sound), 11):
        content = bytearray(sound)
        content[position] ^= 0xFF
        exported.write_bytes(bytes(content))
        try:
            assert load_export(exported).trials.rows() == rows
        except StoreError:
            noticed += 1
    assert noticed > len(sound) // 11 * 0.8


def test_another_packing_than_zip_s_usual_is_refused(exported):
    contents = parts(exported)
    with zipfile.ZipFile(exported, "w", zipfile.ZIP_LZMA) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    with pytest.raises(CorruptRun, match="is packed as no exported run is"):
        load_export(exported)


@pytest.mark.parametrize("name", ["manifest.json", "cases.parquet", "trials.parquet", "checks.parquet"])
def test_a_part_that_is_missing_is_named(exported, name):
    contents = parts(exported)
    del contents[name]
    with pytest.raises(CorruptRun, match=f"lacks {name}"):
        load_export(rebuilt(exported, contents))


@pytest.mark.parametrize("name", ["../../evil.py", "/etc/passwd", "x.parquet", "runs/manifest.json"])
def test_a_part_that_no_run_has_is_refused_and_nothing_is_unpacked(exported, tmp_path, name):
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(CorruptRun, match="which no exported run does"):
        load_export(rebuilt(exported, {**parts(exported), name: b"x"}))
    assert sorted(tmp_path.rglob("*")) == before


def test_a_part_that_is_there_twice_is_refused(exported):
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(exported, "a") as archive:
        archive.writestr("manifest.json", b"{}")
    with pytest.raises(CorruptRun, match="holds a part twice"):
        load_export(exported)


def test_a_part_that_unpacks_to_more_than_any_run_has_is_refused(exported, monkeypatch):
    contents = {**parts(exported), "manifest.json": b"[" + b" " * 3_000_000 + b"]"}
    with zipfile.ZipFile(exported, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    assert exported.stat().st_size < 50_000
    monkeypatch.setattr(export, "_LARGEST", 2**20)
    with pytest.raises(CorruptRun, match=r"manifest\.json unpacks to more than 1 MiB"):
        load_export(exported)


def test_a_table_of_absurd_length_is_refused_before_it_is_read(exported):
    buffer = io.BytesIO()
    pl.select(pl.repeat("a", 10_000_001).alias("case")).write_parquet(buffer)
    assert len(buffer.getvalue()) < 2**20
    with pytest.raises(CorruptRun, match=r"cases\.parquet claims 10000001 rows"):
        load_export(rebuilt(exported, {**parts(exported), "cases.parquet": buffer.getvalue()}))


def test_a_table_that_is_no_table_is_named(exported):
    with pytest.raises(CorruptRun, match=r"trials\.parquet cannot be read"):
        load_export(rebuilt(exported, {**parts(exported), "trials.parquet": b"hello"}))


def test_an_export_of_a_later_format_is_left_alone(exported):
    contents = parts(exported)
    contents["manifest.json"] = json.dumps({**json.loads(contents["manifest.json"]), "format": 2}).encode()
    with pytest.raises(FormatTooNew, match=r"main\.crashrun/manifest\.json has format 2"):
        load_export(rebuilt(exported, contents))
