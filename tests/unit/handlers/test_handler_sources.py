"""What `--handlers` may be given: a file, a folder, a module that is installed or lies in the current folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tasker.errors import HandlerLoadError
from tasker.services.workflows.handlers import load_handlers, located

PACK = "from tasker.step_handler import step_handler\n@step_handler('pack')\ndef pack():\n    return {}\n"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with handlers below the current one."""
    (tmp_path / "shop" / "deep").mkdir(parents=True)
    (tmp_path / "shop" / "handlers.py").write_text(PACK)
    (tmp_path / "shop" / "deep" / "many.py").write_text(PACK)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "shop"


@pytest.mark.parametrize(
    ("source", "meant"), [("shop", "shop"), ("shop.handlers", "shop/handlers.py"), ("shop.deep", "shop/deep")]
)
def test_a_module_that_is_not_installed_is_looked_for_in_the_current_folder(
    shop: Path, source: str, meant: str
) -> None:
    assert located(source) == Path(meant)
    assert load_handlers([source]).list_handlers() == ["pack"]
    assert str(shop.parent) not in sys.path


def test_a_file_beside_us_is_named_without_its_suffix(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shop)
    assert located("handlers") == Path("handlers.py")


def test_an_installed_module_wins_over_a_file_of_its_name(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (shop.parent / "handlers_of_shop.py").write_text(PACK)
    assert located("handlers_of_shop") == Path("handlers_of_shop.py")
    monkeypatch.syspath_prepend(str(shop.parent))
    assert located("handlers_of_shop") == "handlers_of_shop"


@pytest.mark.parametrize("source", ["no/such/folder", "gone.py", Path("gone")])
def test_a_source_that_is_not_there_is_named(source: str | Path) -> None:
    with pytest.raises(HandlerLoadError, match=f"{source} does not exist"):
        load_handlers([source])


def test_a_module_that_is_not_there_is_named_with_where_it_was_looked_for(shop: Path) -> None:
    with pytest.raises(HandlerLoadError, match=r"module not found: 'no_such\.module': it is not") as error:
        load_handlers(["no_such.module"])
    assert f"neither no_such/module.py nor a folder no_such/module is in {shop.parent}" in error.value.message


def test_what_can_be_no_module_is_told(shop: Path) -> None:
    with pytest.raises(HandlerLoadError, match="'two words' is not a file, a folder or a module name"):
        load_handlers(["two words"])


def test_an_import_of_the_project_that_is_not_installed_is_explained(shop: Path) -> None:
    (shop / "handlers.py").write_text("from shop.rates import RATE\n")
    with pytest.raises(HandlerLoadError) as caught:
        load_handlers([shop])
    assert caught.value.hint is not None
    assert "shop is a folder here and not installed: `pip install -e .`" in caught.value.hint


def test_an_import_of_what_lies_above_the_folder_is_told_how_to_write_it(tmp_path: Path) -> None:
    (tmp_path / "handlers.py").write_text("from ..pricing import price\n")
    with pytest.raises(HandlerLoadError, match="beyond top-level package") as caught:
        load_handlers([tmp_path])
    assert "by its full name" in str(caught.value.hint)


def test_a_file_that_its_package_imports_is_loaded_whatever_its_name(tmp_path: Path) -> None:
    (shop := tmp_path / "shop").mkdir()
    imports = "from .test_one import x\nfrom . import test_two\nimport shop.test_three\nfrom shop.test_four import x"
    (shop / "__init__.py").write_text(imports)
    names = ("one", "two", "three", "four", "five")
    for name in names:
        text = f'from tasker.step_handler import step_handler\n@step_handler("{name}")\ndef x():\n    return {{}}\n'
        (shop / f"test_{name}.py").write_text(text)
    assert load_handlers([shop]).list_handlers() == sorted(names[:4])
