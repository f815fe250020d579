"""``bellringer plugin build``: each rule on a real plugin on disk, loaded in real child processes."""

import json
from pathlib import Path

import pytest

from app.errors import PluginInvalid
from app.plugins.authoring import new_plugin
from app.plugins.building import build
from tests.support.waiting import until

SVG = '<svg xmlns="http://www.w3.org/2000/svg"/>'
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """The folder of a new plugin acme/shop with an icon, and without triggers."""
    new_plugin("acme/shop", tmp_path / "shop")
    write(tmp_path / "shop", "icons/a.svg", SVG)
    return tmp_path / "shop"


def write(plugin: Path, path: str, content: str | bytes) -> Path:
    file = plugin / "acme_shop" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def define(name: str, icon: str = "icons/a.svg", more: str = "", function: str = "start") -> str:
    return (
        "from bellringer import param, trigger\n"
        f"@trigger(name='acme/shop/{name}', label='A', icon='{icon}', {more})\n"
        f"async def {function}(ctx): ...\n"
    )


def problems_of(plugin: Path, load_limit: float = 20) -> list[str]:
    with pytest.raises(PluginInvalid) as caught:
        build(plugin, load_limit)
    assert not (plugin / "acme_shop" / "bellringer.json").exists()
    assert not (plugin / "acme_shop" / "icons" / "copied").exists()
    return list(caught.value.problems)


def test_triggers_come_in_the_order_of_their_paths_with_entry_and_icon(plugin: Path) -> None:
    write(plugin, "triggers/orders/new.py", define("orders/new", more="retry=True"))
    write(plugin, "triggers/a-b.py", define("a-b", function="listen"))
    write(plugin, "triggers/_shared.py", "raise SystemExit('never loaded')")
    built = build(plugin)
    assert built.warnings == ()
    assert built.path == plugin / "acme_shop" / "bellringer.json"
    written = json.loads(built.path.read_text())
    assert written == built.manifest.document()
    assert [(t["name"], t["entry"], t["retry"]) for t in written["triggers"]] == [
        ("acme/shop/a-b", "acme_shop.triggers.a-b:listen", False),
        ("acme/shop/orders/new", "acme_shop.triggers.orders.new:start", True),
    ]
    assert build(plugin).path.read_text() == json.dumps(written, indent=2) + "\n"


def test_files_share_code_by_relative_imports_and_may_have_packages_of_any_name(
    plugin: Path,
) -> None:
    write(plugin, "reading.py", "LABEL = 'From elsewhere'")
    write(plugin, "../app/__init__.py", "THEIRS = True")
    source = "import app\nassert app.THEIRS\nfrom ...reading import LABEL\n" + define("x/y")
    write(plugin, "triggers/x/y.py", source.replace("'A'", "LABEL"))
    assert build(plugin).manifest.triggers[0].label == "From elsewhere"


def test_a_start_may_be_wrapped_by_code_from_elsewhere(plugin: Path) -> None:
    write(plugin, "wrapping.py", "def wrapped(fn):\n    return lambda ctx: fn(ctx)\n")
    source = define("a").replace("async def", "@wrapped\nasync def")
    write(plugin, "triggers/a.py", "from acme_shop.wrapping import wrapped\n" + source)
    write(
        plugin, "triggers/b.py", "from acme_shop.triggers.a import start as theirs\n" + define("b")
    )
    assert [t.name for t in build(plugin).manifest.triggers] == ["acme/shop/a", "acme/shop/b"]


def test_a_name_is_the_place_of_the_file(plugin: Path) -> None:
    write(plugin, "triggers/orders/new.py", define("orders/old"))
    assert problems_of(plugin) == [
        "acme_shop/triggers/orders/new.py: the name is 'acme/shop/orders/old', but the file's place "
        "makes it 'acme/shop/orders/new'. Change one of the two."
    ]


def test_two_files_with_one_name_are_refused(plugin: Path) -> None:
    write(plugin, "triggers/a.py", define("a"))
    write(plugin, "triggers/b.py", define("a"))
    assert (
        "acme_shop/triggers/b.py: the name 'acme/shop/a' is that of acme_shop/triggers/a.py too."
        in problems_of(plugin)
    )


@pytest.mark.parametrize("path", ["triggers/Orders.py", "triggers/a b.py", "triggers/Ü/a.py"])
def test_a_path_is_lowercase(plugin: Path, path: str) -> None:
    write(plugin, path, "raise SystemExit('never loaded')")
    [problem] = problems_of(plugin)
    assert "all lowercase" in problem and problem.startswith(f"acme_shop/{path}: The path ")


def test_a_name_longer_than_the_column_is_refused(plugin: Path) -> None:
    path = "x" * 100 + "/" + "y" * 100 + "/" + "z" * 50
    write(plugin, f"triggers/{path}.py", "")
    [problem] = problems_of(plugin)
    assert problem.endswith("has at most 248 characters; this one has 262.")


def test_a_file_that_python_would_take_for_a_folder_is_refused(plugin: Path) -> None:
    write(plugin, "triggers/orders.py", define("orders"))
    write(plugin, "triggers/orders/new.py", define("orders/new"))
    assert problems_of(plugin)[0] == (
        "acme_shop/triggers/orders.py: Python can't tell it from the folder orders/ beside it. "
        "Move it into the folder."
    )


BROKEN: list[tuple[str, str]] = [
    ("x = 1", "A file holds exactly one trigger; this one defines none."),
    ("import missing_thing", "It does not load: ModuleNotFoundError: No module named 'missing_thing'"
     " (acme_shop/triggers/a.py, line 1)"),
    ("\n\n1 / 0", "It does not load: ZeroDivisionError: division by zero "
     "(acme_shop/triggers/a.py, line 3)"),
    ("def (", "It does not load: SyntaxError: "),
    ("raise SystemExit(0)", "It ended its process while loading (exit code 0)."),
    ("import os; os._exit(3)", "It ended its process while loading (exit code 3)."),
    ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
     "It ended its process while loading (exit code -11)."),
    (define("a", more="retry=3"), "trigger 'acme/shop/a', field 'retry': is True or False."),
    (define("a", more="params={'db': param.integration(kind='kv')}"),
     "trigger 'acme/shop/a', field 'params.db': needs 'kv' in permissions['integrations']."),
    (define("a", more="params={'c': param.appconfig()}"),
     "trigger 'acme/shop/a', field 'params.c': needs permissions['appconfig'] to be True."),
    (define("a") + define("b", function="other"),
     "trigger 'acme/shop/b', field 'file': defines a trigger already: start. "
     "Put each into a file of its own."),
]  # fmt: skip


@pytest.mark.parametrize(("source", "said"), BROKEN)
def test_a_file_that_does_not_load_is_named_with_the_reason(
    plugin: Path, source: str, said: str
) -> None:
    write(plugin, "triggers/a.py", source)
    write(plugin, "triggers/good.py", define("good"))
    [problem] = problems_of(plugin)
    assert problem.startswith(f"acme_shop/triggers/a.py: {said}")


def test_every_broken_rule_of_a_file_is_said(plugin: Path) -> None:
    write(plugin, "triggers/a.py", define("a", more="retry=3, stop=1"))
    assert [problem.split("'")[3] for problem in problems_of(plugin)] == ["stop", "retry"]


def test_a_file_that_hangs_is_named_and_ended_with_what_it_started(
    plugin: Path, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    source = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "time.sleep(600)\n"
    )
    write(plugin, "triggers/a.py", source)
    write(plugin, "triggers/good.py", define("good"))
    assert problems_of(plugin, load_limit=10) == [
        "acme_shop/triggers/a.py: It did not load within 10 s."
    ]
    for pid in pids.read_text().split():
        until(lambda pid=pid: is_over(pid))


def is_over(pid: str) -> bool:
    """Whether a process is gone; a zombie that nobody has collected yet is."""
    try:
        return "State:\tZ" in Path("/proc", pid, "status").read_text()
    except OSError:
        return True


def test_a_thread_that_a_file_starts_does_not_hold_up_the_build(plugin: Path) -> None:
    source = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n"
    write(plugin, "triggers/a.py", source + define("a"))
    assert len(build(plugin).manifest.triggers) == 1


def test_a_file_that_prints_spoils_nothing(plugin: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(plugin, "triggers/a.py", "print('{}')\n" + define("a"))
    assert len(build(plugin).manifest.triggers) == 1
    assert capfd.readouterr() == ("", "")


def test_tabs_that_look_like_a_mistake_are_warned_of(plugin: Path) -> None:
    write(
        plugin,
        "triggers/a.py",
        define("a", more="tabs=['X', 'Y'], params={'p': param.string(tab='Z'), "
               "'q': param.string(tab='Y'), 'r': param.string()}"),
    )  # fmt: skip
    built = build(plugin)
    assert built.warnings == (
        "acme_shop/triggers/a.py: tabs: no param uses 'X'.",
        "acme_shop/triggers/a.py: tabs: 'Z' is used by a param but not listed; it comes last.",
    )
    assert built.manifest.triggers[0].tabs == ("Settings", "Y", "Z")


def test_a_plugin_without_triggers_is_warned_of(plugin: Path) -> None:
    built = build(plugin)
    assert built.manifest.triggers == ()
    assert built.warnings == (
        "The plugin brings no trigger yet. 'bellringer trigger new' makes one.",
    )


def test_integrations_are_listed_too(plugin: Path) -> None:
    source = (
        "from bellringer import integration, param\n"
        "@integration(kind='acme/{}/crm', label='CRM', settings={{'token': param.secret()}})\n"
        "async def connect(settings): ...\n"
    )
    write(plugin, "integrations/crm.py", source.format("shop"))
    [integration] = build(plugin).manifest.document()["integrations"]
    assert integration["kind"] == "acme/shop/crm"
    assert integration["entry"] == "acme_shop.integrations.crm:connect"


# --- icons -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.svg", SVG.encode()),
        ("a.png", PNG),
        ("a.jpg", b"\xff\xd8\xff\xe0"),
        ("a.jpeg", b"\xff\xd8\xff\xe0"),
        ("a.gif", b"GIF89a"),
        ("a.webp", b"RIFF\0\0\0\0WEBP"),
        ("full.svg", SVG.encode().ljust(50 * 1024)),
    ],
)
def test_an_icon_in_its_folder_ships_as_it_lies(plugin: Path, name: str, content: bytes) -> None:
    write(plugin, f"icons/{name}", content)
    write(plugin, "triggers/a.py", define("a", icon=f"./icons/{name}"))
    assert build(plugin).manifest.triggers[0].icon == f"icons/{name}"
    assert not (plugin / "acme_shop" / "icons" / "copied").exists()


@pytest.mark.parametrize("icon", ["art/a.png", "../art/a.png", "triggers/a.png"])
def test_an_icon_from_elsewhere_is_copied(plugin: Path, icon: str) -> None:
    write(plugin, icon, PNG)
    write(plugin, "triggers/x/a.py", define("x/a", icon=icon))
    assert build(plugin).manifest.triggers[0].icon == "icons/copied/x/a.png"
    assert (plugin / "acme_shop/icons/copied/x/a.png").read_bytes() == PNG
    write(plugin, icon, PNG + b"new")
    build(plugin)
    assert (plugin / "acme_shop/icons/copied/x/a.png").read_bytes() == PNG + b"new"


@pytest.mark.parametrize(
    ("icon", "content", "said"),
    [
        ("icons/none.svg", None,
         "The icon icons/none.svg is missing; it is looked for at acme_shop/icons/none.svg."),
        ("icons/big.svg", SVG.encode().ljust(50 * 1024 + 1),
         "The icon icons/big.svg has 51,201 bytes; at most 51,200 are allowed."),
        ("icons/fake.png", SVG.encode(),
         "The icon icons/fake.png holds no image of the type that its name says."),
        ("icons/empty.svg", b"",
         "The icon icons/empty.svg holds no image of the type that its name says."),
        ("../../out.svg", SVG.encode(),
         "The icon ../../out.svg lies outside the plugin's folder."),
    ],
)  # fmt: skip
def test_a_wrong_icon_stops_the_build(
    plugin: Path, icon: str, content: bytes | None, said: str
) -> None:
    if content is not None:
        write(plugin, icon, content)
    write(plugin, "art/fine.svg", SVG)
    write(plugin, "triggers/a.py", define("a", icon=icon))
    write(plugin, "triggers/b.py", define("b", icon="art/fine.svg"))
    assert problems_of(plugin) == [f"acme_shop/triggers/a.py: {said}"]


def test_a_link_out_of_the_plugin_is_no_icon(plugin: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.svg").write_text(SVG)
    (plugin / "acme_shop/icons/link.svg").symlink_to(tmp_path / "secret.svg")
    write(plugin, "triggers/a.py", define("a", icon="icons/link.svg"))
    [problem] = problems_of(plugin)
    assert problem.endswith("lies outside the plugin's folder.")


# --- the project -----------------------------------------------------------------------------------


def test_a_build_starts_in_any_folder_of_the_plugin_and_finds_src(plugin: Path) -> None:
    (plugin / "src").mkdir()
    (plugin / "acme_shop").rename(plugin / "src" / "acme_shop")
    write(plugin / "src", "triggers/a.py", define("a"))
    built = build(plugin / "src" / "acme_shop" / "triggers")
    assert built.path == plugin / "src" / "acme_shop" / "bellringer.json"
    assert built.manifest.triggers[0].entry == "acme_shop.triggers.a:start"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"acme/shop" = "acme_shop"', "", 'names one plugin: "acme/shop" = "acme_shop".'),
        ('"acme/shop" =', '"shop" =', "The plugin's name is scope/name, as in acme/shop"),
        ('= "acme_shop"', '= "acme_shop:plugin"', "is the name of a package, as in acme_shop."),
        ('= "acme_shop"', '= "gone"', "The package gone is missing"),
        ('version = "0.1.0"', 'dynamic = ["version"]', "project.version is there, as a string"),
        ("[project]", "[project", "It is no TOML"),
    ],
)
def test_a_project_that_names_no_plugin_is_refused(
    plugin: Path, old: str, new: str, said: str
) -> None:
    file = plugin / "pyproject.toml"
    file.write_text(file.read_text().replace(old, new, 1))
    [problem] = problems_of(plugin)
    assert said in problem


def test_where_there_is_no_project_the_way_to_one_is_said(tmp_path: Path) -> None:
    with pytest.raises(PluginInvalid, match="'bellringer plugin new' makes a plugin"):
        build(tmp_path)
