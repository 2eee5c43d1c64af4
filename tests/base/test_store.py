"""The store: records of a run under the key of its settings, and files that are found by what they were measured of."""

from operator import itemgetter

import pytest

from cosim.base.errors import InputError
from cosim.base.seal import seal_line
from cosim.base.store import RecordFormat, RecordStore, continue_run, describe_damage, find_kept, settings_key

SETTINGS = {"network": "one", "seed": 3}
KEY = settings_key(SETTINGS)


def read(content, where):
    if not isinstance(content, dict) or content.keys() != {"number", "value"}:
        raise InputError(f"{where}: must hold a number and a value")
    return content


FORM = RecordFormat("points", itemgetter("number"), lambda record: record, read)


def record(number):
    return {"number": number, "value": number / 7}


def opened(folder, settings=SETTINGS, names=("a.jsonl",)):
    stores = [RecordStore(folder / name, settings_key(settings), FORM) for name in names]
    continue_run(folder / "run.json", settings, *stores)
    return stores[0] if len(stores) == 1 else stores


def filled(folder, numbers=(0, 1, 2)):
    store = opened(folder)
    for number in numbers:
        store.append(record(number))
    return folder / "a.jsonl"


def test_any_flipped_bit_of_a_line_leaves_that_record_out_and_no_other_number_in(tmp_path):
    path = filled(tmp_path)
    whole = path.read_bytes()
    for place in range(0, 8 * len(whole), 13):
        changed = bytearray(whole)
        changed[place // 8] ^= 1 << place % 8
        path.write_bytes(changed)
        found = RecordStore(path, KEY, FORM).records
        assert len(found) < 3 and all(found[number] == record(number) for number in found)
        store = opened(tmp_path)
        for number in {0, 1, 2} - store.records.keys():
            store.append(record(number))
        store.tidy()
        assert path.read_bytes() == whole


@pytest.mark.parametrize("content", [{"number": 1}, [1], {"number": 1, "value": 2, "more": 3}])
def test_a_line_of_another_form_is_measured_anew_in_the_same_words_as_a_damaged_one(tmp_path, content):
    path = filled(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    line = seal_line(content, KEY) if isinstance(content, dict) else b"[1]\n"
    path.write_bytes(b"".join([lines[0], line, lines[2]]))
    store = opened(tmp_path)
    assert list(store.records) == [0, 2] and list(store.damaged) == [2]
    assert store.damage == describe_damage(path, "1 of 3 points")
    assert store.damage == f"{path}: 1 of 3 points damaged or of an earlier cosim, measured anew"
    assert opened(tmp_path).damage == ""  # what was left out is gone


def test_two_files_of_one_run_vouch_for_each_other(tmp_path):
    names = ("a.jsonl", "b.jsonl")
    first, second = opened(tmp_path, names=names)
    first.append(record(0))
    second.append(record(5))
    (tmp_path / "run.json").unlink()
    (tmp_path / "b.jsonl").write_bytes(seal_line(record(5), "another key"))
    first, second = opened(tmp_path, names=names)
    assert first.records == {0: record(0)} and second.records == {} and (tmp_path / "run.json").is_file()


def test_a_run_of_other_settings_is_refused_whoever_keeps_it(tmp_path):
    filled(tmp_path)
    with pytest.raises(InputError, match="holds a run with another seed: 3, not 4; choose another folder with -o"):
        opened(tmp_path, SETTINGS | {"seed": 4})
    (tmp_path / "run.json").unlink()
    with pytest.raises(InputError, match=r"run\.json is missing, .*, and no line of a\.jsonl is of these settings"):
        opened(tmp_path, SETTINGS | {"seed": 4})


def test_versions_do_not_bind_a_record(tmp_path):
    filled(tmp_path)
    assert len(opened(tmp_path, SETTINGS | {"made_with": {"numpy": "3"}}).records) == 3


def test_the_first_file_that_fits_is_found_and_damaged_ones_are_named(tmp_path):
    paths = [tmp_path / name for name in ("absent", "damaged", "foreign", "fits", "later")]
    for path in paths[1:]:
        path.write_text(path.name)
    said = []

    def load(path):
        if path.name == "damaged":
            raise InputError("no")
        return None if path.name == "foreign" else path.name

    assert find_kept(paths, load, said.append) == "fits"
    assert said == [f"{paths[1]}: damaged or of an earlier cosim, measured anew"]
    assert find_kept(paths[:3], load, said.append) is None
