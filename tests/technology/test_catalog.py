"""Technologies by name and by file, what each promises, and what is said about a file that is wrong."""

import re

import pytest

from cosim.base.errors import InputError, MissingToolError
from cosim.base.resources import models_path
from cosim.technology.catalog import DEFAULT_TECHNOLOGY, load_technology, technology_names

INSTALL = "install it with: get kit9"


@pytest.fixture
def write(tmp_path):
    """(*(old, new)) -> a TOML of one's own beside a copy of the library: generic180's with these texts replaced."""
    devices = models_path() / "devices"
    (tmp_path / "generic180.lib").write_bytes((devices / "generic180.lib").read_bytes())

    def build(*changes):
        text = (devices / "generic180.toml").read_text()
        for old, new in changes:
            assert text.count(old) == 1
            text = text.replace(old, new)
        (tmp_path / "mine.toml").write_text(text)
        return str(tmp_path / "mine.toml")

    return build


@pytest.fixture
def kit(write):
    """A technology that lives in a foundry kit, which is not installed."""
    return write(
        ('file = "generic180.lib"', f'file = "kit9/models.lib"\npackage = "kit9/models.lib"\ninstall = "{INSTALL}"')
    )


def install_kit(root):
    (root / "kit9").mkdir(parents=True)
    (root / "kit9" / "models.lib").write_text(".lib tt\n.endl\n")
    return root / "kit9" / "models.lib"


def test_unknown_name_lists_the_known_ones():
    text = (
        "technology must be one of generic180, gf180mcu, sg13g2, sg13g2_1v2, sky130, or a .toml file of your own, "
        "not 'generic90'"
    )
    with pytest.raises(InputError, match=text):
        load_technology("generic90")


def test_the_default_is_known():
    assert DEFAULT_TECHNOLOGY in technology_names()
    assert load_technology(DEFAULT_TECHNOLOGY).name == DEFAULT_TECHNOLOGY


def test_the_default_says_what_its_file_says(technology):
    assert (technology.supply, technology.supply_max, technology.celsius) == (1.8, 3.3, 27.0)
    assert technology.device("n").name == "generic180_n" and technology.device("p").name == "generic180_p"
    assert (technology.nfet.slope_factor, technology.pfet.slope_factor) == (1.32, 1.31)
    assert (technology.sizing.cell_n.w, technology.sizing.cell_n.l, technology.sizing.cell_n.cascode) == (
        5e-6,
        5e-6,
        None,
    )
    assert technology.corner == "tt" and list(technology.library.sections) == ["tt", "ff", "ss", "fs", "sf"]
    assert technology.library.file == models_path() / "devices" / "generic180.lib"


def test_snap_rounds_to_the_grid(technology):
    assert technology.grid == 5e-9
    assert technology.snap(1.0024e-6) == pytest.approx(1.000e-6, rel=1e-12)
    assert technology.snap(1.0026e-6) == pytest.approx(1.005e-6, rel=1e-12)


def test_a_file_of_ones_own(write, tmp_path):
    cascode = "mirror_n = { w = 1e-6, l = 5e-6, cascode = { w = 3e-6, l = 0.4e-6 } }"
    found = load_technology(
        write(
            ('name = "generic180"', 'name = "mine"'),
            ("mirror_n = { w = 1e-6, l = 5e-6 }", cascode),
            ('fs = "fs"\nsf = "sf"\n', ""),
        )
    )
    assert found.name == "mine" and found.library.file == tmp_path / "generic180.lib"
    assert found.sizing.mirror_n.cascode == (3e-6, 0.4e-6)
    assert list(found.library.sections) == ["tt", "ff", "ss"]  # a process need not have all of them


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("grid = 5e-9\n", "", "grid is missing; docs/reference/technologies.md says what it is"),
        ("slope_factor = 1.32\n", "", "nfet.slope_factor is missing"),
        ("cell_p = { w = 5e-6, l = 5e-6 }\n", "", "sizing.cell_p is missing"),
        ("mirror_p = { w = 1e-6, l = 5e-6 }", "mirror_p = { w = 1e-6 }", "sizing.mirror_p.l is missing"),
        ('[corners]\ntt = "tt"', "[corners]", "corners.tt must name a section of the library"),
        ("grid = 5e-9", "grid = 5e-9\ngird = 5e-9", "gird is no field; known are "),
        ('tt = "tt"', 'tt = "tt"\nhot = "tt"', "corners.hot is no field; known are ff, fs, sf, ss, tt"),
        ("spread_vt = 0.0208\nslope_factor = 1.31", "spread_vt = 0\nslope_factor = 1.31\na = 1",
         "pfet.a is no field"),
        ("w = 0.4e-6, l = 0.4e-6", "w = 0.4e-6, l = 0.4e-6, m = 2", "sizing.sample_switch.m is no field"),
        ('name = "generic180"', "name = 180", "name must be a text on one line, not 180"),
        ("supply = 1.8", 'supply = "1.8 V"', "supply must be a positive number in SI units, not '1.8 V'"),
        ("supply = 1.8", "supply = true", "supply must be a positive number in SI units, not True"),
        ("supply = 1.8", "supply = nan", "supply must be a positive number in SI units, not nan"),
        ("grid = 5e-9", "grid = 0", "grid must be a positive number in SI units, not 0"),
        ("diffusion = 0", "diffusion = -1", "library.diffusion must be a number of at least 0 in SI units, not -1"),
        ("slope_factor = 1.32", "slope_factor = 0.9", "nfet.slope_factor must be a number of at least 1 in SI units"),
        ("cell_n = { w = 5e-6, l = 5e-6 }", "cell_n = 5e-6", "sizing.cell_n must be a table, not 5e-06"),
        ("length_unit = 1", 'length_unit = 1\nalso = "a.lib"', "library.also must be a list of file names, not"),
        ("mirror_n = { w = 1e-6, l = 5e-6 }", "mirror_n = { w = 1e-6, l = 5.002e-6 }",
         "sizing.mirror_n.l must be a multiple of the grid 5e-09 m, not 5.002e-06; 5e-06 is the nearest"),
        ("mirror_n = { w = 1e-6, l = 5e-6 }", "mirror_n = { w = 1e-6, l = 5e-6, cascode = { w = 2e-6, l = 3.003e-7 } }",
         "sizing.mirror_n.cascode.l must be a multiple of the grid 5e-09 m, not 3.003e-07; 3e-07 is the nearest"),
        ("sample_switch = { ", "sample_switch = { cascode = { w = 1e-6, l = 1e-6 }, ",
         "sizing.sample_switch is a switch and takes no cascode; leave it out"),
        ("celsius = 27", "celsius = -400", "celsius must lie in -55 to 150 C, not -400 C"),
        ("supply = 1.8", "supply = 3.4", "supply must be at most supply_max 3.3, not 3.4"),
        ('file = "generic180.lib"', 'file = "absent.lib"', "library.file must be in the same folder; there is no"),
        ("grid = 5e-9", "grid = = 5e-9", "must be a TOML file, but is"),
        ("grid = 5e-9", f"grid = 1{'0' * 400}", "grid: must be a whole number of at most 64 bits"),
        ("mirror_n = { w = 1e-6, l = 5e-6 }", "mirror_n = { w = 1, l = 5 }",
         "sizing.mirror_n.w must be a number of at least 1e-08 and at most 0.001 in SI units, not 1"),
        ("spread_vt = 0.0208\nslope_factor = 1.31", "spread_vt = 20.8\nslope_factor = 1.31",
         "pfet.spread_vt must be a number of at least 0 and at most 1 in SI units, not 20.8"),
        ("response = [[1e-11, 1.282],", "response = [[1e-11, 0.9],", "n at least 1, not [[1e-11, 0.9]"),
        ("response = [[1e-11, 1.282],", 'response = ["12",', "nfet.response must be a list of [current in A, n]"),
        ("[8e-9, 1.456]]", "[inf, 1.456]]", "nfet.response must be a list of [current in A, n]"),
        ("length_unit = 1", 'length_unit = 1\npackage = "../x.lib"\ninstall = "do"',
         "library.package must be PACKAGE/PATH/IN/IT, not '../x.lib'"),
    ],
)  # fmt: skip
def test_a_file_that_is_wrong(write, old, new, text):
    path = write((old, new))
    with pytest.raises(InputError, match=re.escape(f"{path}: ") + ".*" + re.escape(text)):
        load_technology(path)


def test_a_root_that_nothing_needs(tmp_path):
    with pytest.raises(InputError, match="--pdk-root is for a foundry's kit; generic180 brings its own library"):
        load_technology("generic180", tmp_path)


def test_absent_or_unreadable_file(tmp_path):
    with pytest.raises(InputError, match=r"absent.toml: must be a file, but is missing; docs/reference/techno"):
        load_technology(str(tmp_path / "absent.toml"))
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(InputError, match="latin.toml: must be a TOML file, but is cut off"):
        load_technology(str(tmp_path / "latin.toml"))


def test_kit_that_is_not_installed(kit, monkeypatch):
    monkeypatch.delenv("PDK_ROOT", raising=False)
    text = f"foundry kit not found: neither --pdk-root nor PDK_ROOT is given; {INSTALL}"
    with pytest.raises(MissingToolError, match=text) as error:
        load_technology(kit)
    assert error.value.exit_code == 1


def test_a_file_that_cannot_be_looked_for(write):
    with pytest.raises(InputError, match="aaa: cannot be read: File name too long"):
        load_technology(write(('file = "generic180.lib"', f'file = "{"a" * 300}"')))


def test_a_package_that_python_cannot_look_up(write, monkeypatch):
    monkeypatch.delenv("PDK_ROOT", raising=False)
    path = write(("length_unit = 1", 'length_unit = 1\ninstall = "get it"\npackage = "__main__/x"'))
    with pytest.raises(
        MissingToolError, match="foundry kit not found: neither --pdk-root nor PDK_ROOT is given; get it"
    ):
        load_technology(path)


def test_pdk_root_without_the_kit(kit, monkeypatch, tmp_path):
    monkeypatch.setenv("PDK_ROOT", str(tmp_path / "other"))
    text = f"foundry kit not found: PDK_ROOT is {re.escape(str(tmp_path))}/other, without kit9/models.lib; {INSTALL}"
    with pytest.raises(MissingToolError, match=text):
        load_technology(kit)


def test_wrong_pdk_root_is_the_users_error_even_with_a_good_environment(kit, monkeypatch, tmp_path):
    install_kit(tmp_path / "good")
    monkeypatch.setenv("PDK_ROOT", str(tmp_path / "good"))
    text = "--pdk-root .*bad: there is no kit9/models.lib under it; name the folder above, or install it with: get kit9"
    with pytest.raises(InputError, match=text):
        load_technology(kit, tmp_path / "bad")


def test_a_kit_is_found_by_option_then_environment_then_package(kit, monkeypatch, tmp_path):
    package = install_kit(tmp_path / "site")
    (package.parent / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.delenv("PDK_ROOT", raising=False)
    assert load_technology(kit).library.file == package
    named = install_kit(tmp_path / "environment")
    monkeypatch.setenv("PDK_ROOT", str(tmp_path / "environment"))
    assert load_technology(kit).library.file == named
    given = install_kit(tmp_path / "option")
    assert load_technology(kit, tmp_path / "option").library.file == given


@pytest.mark.parametrize("name", ["gf180mcu", "sky130"])
def test_shipped_kits_say_how_they_are_installed(name, monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("PDK_ROOT", str(tmp_path))
    with pytest.raises(MissingToolError, match=r"foundry kit not found.*install it with: pip install"):
        load_technology(name)
