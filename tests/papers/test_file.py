"""Files of models that stay software: equal bytes, clear refusals, and no compiler that takes them for a network."""

import json
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from cosim.base.arrays import read_torch  # noqa: E402
from cosim.base.errors import InputError, MappingError  # noqa: E402
from cosim.exchange.checkpoint import load_network  # noqa: E402
from cosim.network.software_only import SOFTWARE_FORMAT, unmapped_parts  # noqa: E402
from cosim.papers.backbone import Backbone  # noqa: E402
from cosim.papers.file import Model, load_model, model_bytes, save_model  # noqa: E402
from cosim.papers.shape import CELLS, BackboneShape, check_shape  # noqa: E402

SHAPE = BackboneShape(2, 3, cell="cmru", width=8, state=4, blocks=2)


def make_model(shape=SHAPE, seed=0):
    torch.manual_seed(seed)
    backbone = Backbone(shape)
    backbone.offset.fill_(0.5)
    backbone.set_epsilon(0.25)
    return Model(backbone.eval(), "task", ("a", "b", "c"), 0.25, {"figures": {"loss": 1.0}})


@pytest.mark.parametrize("cell", [*CELLS, "mingru+alphacmru"])
def test_there_and_back(tmp_path, cell):
    model = make_model(replace(SHAPE, cell=cell))
    save_model(tmp_path / "m.pt", model)
    found = load_model(tmp_path / "m.pt")
    x = torch.randn(3, 40, 2)
    with torch.no_grad():
        assert torch.equal(model.backbone(x), found.backbone(x))
    assert (found.task, found.labels, found.epsilon, found.history) == ("task", ("a", "b", "c"), 0.25, model.history)
    assert found.backbone.shape == model.backbone.shape and not found.backbone.training
    assert model_bytes(found) == (tmp_path / "m.pt").read_bytes() == model_bytes(make_model(replace(SHAPE, cell=cell)))
    assert model_bytes(make_model(replace(SHAPE, cell=cell), seed=1)) != model_bytes(model)


@pytest.mark.parametrize(
    ("cell", "named"),
    [
        ("cmru", []),
        ("bmru", []),
        ("lru", ["the LRU's complex state"]),
        ("mingru", ["the minGRU's logistic gate"]),
        ("mingru+alphacmru", ["the alphaCMRU's level", "the minGRU's logistic gate"]),
    ],
)
def test_the_compiler_is_told_what_has_no_circuit(tmp_path, cell, named):
    save_model(tmp_path / "m.pt", make_model(replace(SHAPE, cell=cell)))
    with pytest.raises(MappingError, match="stays software") as caught:
        load_network(tmp_path / "m.pt")
    text = str(caught.value)
    parts = ["LayerNorm over 8 features", "the GLU", "gate of eq. 25", "sinusoidal positions", *named]
    assert all(part in text for part in parts) and text.count("nearest: ") == len(parts)
    assert text.startswith(str(tmp_path / "m.pt")) and "cosim train" in text and "\n" not in text


def test_without_positions_none_are_named():
    names = [part.part for part in unmapped_parts("cmru", 256, positions=False)]
    assert names == ["LayerNorm over 256 features", "the GLU", "the sigmoid gate of eq. 25"]


def damage(change):
    """What a file holds, after a change."""
    meta = {"format": SOFTWARE_FORMAT, "version": 1, "shape": vars(SHAPE), "task": "task", "labels": ["a", "b", "c"]}
    found = {"meta": json.loads(json.dumps(meta | {"epsilon": 0.0, "history": {}})), "arrays": {}}
    found["arrays"] = {name: value.clone() for name, value in make_model().backbone.state_dict().items()}
    change(found)
    return found


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f["meta"].update(format="cosim-checkpoint"), "meta.format must be 'cosim-software'"),
        (lambda f: f["meta"].update(version=2), "meta.version must be 1, not 2; use its cosim"),
        (lambda f: f["meta"].pop("task"), "must have the field task"),
        (lambda f: f["meta"].update(epsilon=3.0), "meta.epsilon must lie in"),
        (lambda f: f["meta"].update(epsilon=float("nan")), "meta.epsilon must lie in"),
        (lambda f: f["meta"].update(labels=["a"]), "meta.labels must be 3"),
        (lambda f: f["meta"]["shape"].update(width=0), "meta.shape: width must lie in"),
        (lambda f: f["meta"]["shape"].update(width="8"), "width must be a whole number, not text"),
        (lambda f: f["meta"]["shape"].update(cell="gru"), "cell must be one of"),
        (lambda f: f["meta"]["shape"].update(wiring="ring"), "must be a known value"),
        (lambda f: f["meta"]["shape"].update(state=5), "must have shape"),
        (lambda f: f["arrays"].pop("output.bias"), "differ in output.bias"),
        (lambda f: f["arrays"].update(other=torch.zeros(1)), "differ in other"),
        (
            lambda f: f["arrays"].update({"output.bias": torch.zeros(4)}),
            r"output.bias must have shape \(3,\), not \(4,\)",
        ),
        (lambda f: f["arrays"].update({"output.bias": torch.zeros(3).int()}), "must be a dense tensor of float32"),
        (lambda f: f["arrays"]["output.bias"].fill_(float("nan")), "output.bias must hold finite numbers"),
        (lambda f: f.pop("arrays"), "holds 'meta' and 'arrays', not meta"),
        (lambda f: f.update(meta=3), "meta must be a table"),
    ],
)
def test_damaged_files_are_refused_by_name(tmp_path, change, words):
    torch.save(damage(change), tmp_path / "m.pt")
    with pytest.raises(InputError, match=words) as caught:
        load_model(tmp_path / "m.pt")
    assert str(tmp_path / "m.pt") in str(caught.value)


def test_other_files_and_names(tmp_path):
    (tmp_path / "m.pt").write_bytes(b"no zip")
    with pytest.raises(InputError, match="m.pt"):
        load_model(tmp_path / "m.pt")
    with pytest.raises(InputError, match="must be named .pt, not '.npz'"):
        save_model(tmp_path / "m.npz", make_model())


def test_a_file_that_asks_for_a_huge_model_takes_no_memory(tmp_path):
    """2^14 features would be 59 GB."""
    torch.save(damage(lambda f: f["meta"]["shape"].update(width=1 << 14)), tmp_path / "m.pt")
    with pytest.raises(InputError, match="meta.shape needs 147654.* numbers, more than a file of this size holds"):
        load_model(tmp_path / "m.pt")


def test_loading_leaves_the_random_numbers_alone(tmp_path):
    save_model(tmp_path / "m.pt", make_model())
    before = torch.random.get_rng_state()
    load_model(tmp_path / "m.pt")
    assert torch.equal(torch.random.get_rng_state(), before)


def test_an_earlier_cosim_refuses_a_backbone_with_levels(tmp_path):
    torch.manual_seed(0)
    for levels, version in ((None, 1), (7, 2)):
        backbone = Backbone(check_shape(BackboneShape(2, 3, width=8, levels=levels)))
        save_model(tmp_path / "b.pt", Model(backbone, "task", tuple("abc"), 1.0))
        assert read_torch(tmp_path / "b.pt", "")["meta"]["version"] == version
        assert load_model(tmp_path / "b.pt").backbone.shape.levels == levels


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"levels": 0}, "levels must lie in 1 to 255, not 0"),
        ({"cell": "bmru", "levels": 7}, "levels is for a cell whose states they limit, cmru or alphacmru, not bmru"),
        ({"cell": "alphacmru", "levels": 7}, "levels of an alphacmru must be even, so that 0 is one, and at most 32"),
        ({"cell": "alphacmru", "levels": 34}, "at most 32, not 34"),
        ({"cell": "cmru+alphacmru", "levels": 6, "blocks": 2}, "levels is for cmru or alphacmru, not both"),
        ({"start": "low", "levels": 1}, "levels must be at least 2 with --start low"),
    ],
    ids=str,
)
def test_levels_that_no_cell_has(changed, text):
    with pytest.raises(InputError, match=text):
        check_shape(replace(BackboneShape(2, 3, width=8), **changed))


def test_an_alphacmru_on_levels_has_a_circuit():
    cell = "the alphaCMRU's level"
    assert cell in [part.part for part in unmapped_parts("alphacmru", 8, positions=False)]
    assert cell not in [part.part for part in unmapped_parts("alphacmru", 8, positions=False, levels=6)]
