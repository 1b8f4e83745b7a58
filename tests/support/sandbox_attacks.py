"""Ways out of the command sandbox, tried inside of it: a script whose argument is facts as JSON.

Standard library only. It prints `ESCAPED NAME` where it saw for itself that it got out; what it may
have written is looked for outside.
"""

# ruff: noqa: T201 - what it prints is its result

import ctypes
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

EVIL = "evil = true\n"
_LIBC = ctypes.CDLL(None, use_errno=True)


def append(path: str) -> Callable[[], object]:
    def attack() -> None:
        with open(path, "a", encoding="utf-8") as file:
            file.write(EVIL)

    return attack


def create(path: str) -> Callable[[], object]:
    def attack() -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(EVIL, encoding="utf-8")

    return attack


def move_and_remake(folder: str, file: str) -> Callable[[], object]:
    def attack() -> None:
        os.rename(folder, f"{folder}-moved")
        create(f"{folder}/{file}")()

    return attack


def shell(line: str) -> Callable[[], object]:
    return lambda: subprocess.run(["/bin/sh", "-c", line], check=True, capture_output=True)


def replace(path: str) -> Callable[[], object]:
    def attack() -> None:
        Path("new.tmp").write_text(EVIL, encoding="utf-8")
        os.replace("new.tmp", path)

    return attack


def through_link(path: str) -> Callable[[], object]:
    def attack() -> None:
        other = path.replace("/", "-")
        os.link(path, other)
        append(other)()

    return attack


def remove_and_remake(path: str) -> Callable[[], object]:
    def attack() -> None:
        if os.path.isdir(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
        create(f"{path}/x" if path.endswith("hooks") else path)()

    return attack


def linked_over(path: str) -> Callable[[], object]:
    def attack() -> None:
        os.makedirs("planted", exist_ok=True)
        os.rename(path, f"{path}-moved")
        os.symlink(os.path.abspath("planted"), path)

    return attack


def in_project(other: str) -> dict[str, Callable[[], object]]:
    """What writes into the open folders; each of these works where there is no sandbox."""
    return {
        "an existing hook": append(".git/hooks/pre-commit"),
        "a new hook": create(".git/hooks/post-commit"),
        "the config of Git": append(".git/config"),
        "the config by Git": shell("git config core.fsmonitor ./evil"),
        "a second name of the config": through_link(".git/config"),
        "another file over the config": replace(".git/config"),
        "the config made anew": remove_and_remake(".git/config"),
        "attributes": append(".git/info/attributes"),
        "tasks": append(".vscode/tasks.json"),
        "new settings": create(".vscode/settings.json"),
        "tasks by another name": through_link(".vscode/tasks.json"),
        "a folder of another editor": create(".idea/workspace.xml"),
        "a devcontainer": create(".devcontainer/devcontainer.json"),
        "a shell's file": append(".envrc"),
        "an editor's file": replace(".exrc"),
        "a workflow": append(".github/workflows/ci.yml"),
        "orders for agents": append("AGENTS.md"),
        "servers for agents": replace(".mcp.json"),
        "a package script": append("package.json"),
        "a hook of a nested repository": create("sub/.git/hooks/post-commit"),
        "the config of a nested repository": append("sub/.git/config"),
        "a hook of a submodule": create(".git/modules/lib/hooks/post-commit"),
        "the config of a submodule": append(".git/modules/lib/config"),
        "a file that leads Git": append("tree/.git"),
        "hooks that the config names": append("scripts/hooks/pre-commit"),
        "what a link of an agent leads to": append("shared/mcp.json"),
        "tasks of the second folder": append(f"{other}/.vscode/tasks.json"),
        "a repository where there is none": create(f"{other}/.git/config"),
        "a submodule moved": move_and_remake(".git/modules", "lib/hooks/post-commit"),
        "a nested repository moved": move_and_remake("sub/.git", "hooks/post-commit"),
        "an editor's folder moved": move_and_remake(".vscode", "tasks.json"),
        "hooks removed": remove_and_remake(".git/hooks"),
        "hooks linked elsewhere": linked_over(".git/hooks"),
        "the repository moved": move_and_remake(".git", "hooks/post-commit"),
    }


def opens(path: str, flags: int = os.O_WRONLY) -> Callable[[], bool]:
    def attack() -> bool:
        os.close(os.open(path, flags))
        return True

    return attack


def connects(address: str | tuple[str, int]) -> Callable[[], bool]:
    def attack() -> bool:
        kind = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        with socket.socket(kind) as one:
            one.settimeout(3)
            one.connect(address)
        return True

    return attack


def own_mounts(line: str) -> Callable[[], bool]:
    """The same in mounts of its own, with all capabilities over those, as root and as nobody."""

    def attack() -> bool:
        shell = ["/bin/sh", "-c", f"{line} && echo DONE"]
        tries = (["unshare", "-Urm", *shell], ["unshare", "-Um", *shell])
        ends = [subprocess.run(one, check=False, capture_output=True) for one in tries]
        return any(b"DONE" in end.stdout for end in ends)

    return attack


def has_capability() -> bool:
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return any(int(line.split()[1], 16) for line in lines if line.startswith("Cap"))


def may_gain_privileges() -> bool:
    return "NoNewPrivs:\t1" not in Path("/proc/self/status").read_text("ascii")


def namespaces() -> list[str]:
    """Which of each kind this process is in."""
    kinds = ("user", "pid", "mnt", "ipc", "uts", "net")
    return [os.readlink(f"/proc/self/ns/{kind}") for kind in kinds]


def remounts(target: str) -> Callable[[], bool]:
    remount, bind = 32, 4096
    return lambda: _LIBC.mount(None, target.encode(), None, remount | bind, None) == 0


def unmounts(target: str) -> Callable[[], bool]:
    return lambda: _LIBC.umount2(target.encode(), 2) == 0


def leaks(words: list[str]) -> Callable[[], bool]:
    def attack() -> bool:
        texts = [json.dumps(dict(os.environ))]
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    texts.append(Path(f"/proc/{name}/environ").read_text("utf-8", "replace"))
                except OSError:
                    continue
        return any(word in text for word in words for text in texts)

    return attack


def sees_process(mark: str) -> Callable[[], bool]:
    def attack() -> bool:
        files = [Path(f"/proc/{name}/cmdline") for name in os.listdir("/proc") if name.isdigit()]
        return any(file.read_bytes() == f"sleep\0{mark}\0".encode() for file in files)

    return attack


def stays_behind(mark: str) -> Callable[[], object]:
    """It is looked for outside."""
    return lambda: subprocess.Popen(["sleep", mark], start_new_session=True, env={})


def on_system(facts: dict[str, str]) -> dict[str, Callable[[], object]]:
    """What reaches the rest of the machine. `facts` name what is there outside."""
    outside = facts["outside"]
    return {
        "capabilities": has_capability,
        "privileges of a program": may_gain_privileges,
        "/usr remounted": remounts("/usr"),
        "hooks unmounted": unmounts(os.path.abspath(".git/hooks")),
        "/usr remounted in own mounts": own_mounts("mount -o remount,bind,rw /usr"),
        "hooks unmounted in own mounts": own_mounts("umount .git/hooks"),
        "what lies below the hooks": own_mounts("mount --bind . /tmp"),
        "/proc mounted anew": own_mounts("mount -t proc proc /tmp && test -w /tmp/sys/kernel/acct"),
        "/usr": create(facts["usr"]),
        "/etc": create(facts["etc"]),
        "core_pattern": opens("/proc/sys/kernel/core_pattern"),
        "sysrq": opens("/proc/sysrq-trigger"),
        "modprobe": opens("/proc/sys/kernel/modprobe"),
        "the kernel's memory": opens("/proc/kcore", os.O_RDONLY),
        "/sys": lambda: bool(os.listdir("/sys")),
        "/run": lambda: bool(os.listdir("/run")),
        "passwords": opens("/etc/shadow", os.O_RDONLY),
        "devices": lambda: not set(os.listdir("/dev")) <= _DEVICES,
        "a device": lambda: os.mknod("/tmp/disk", 0o60600, os.makedev(8, 0)) is None,
        "the terminal": opens("/dev/tty", os.O_RDWR),
        "the home": opens(f"{outside}/private.txt", os.O_RDONLY),
        "the home by way of /proc": opens(f"/proc/1/root{outside}/private.txt", os.O_RDONLY),
        "the state folder": opens(f"{facts['state']}/secret.txt", os.O_RDONLY),
        "a new file in the state folder": create(f"{facts['state']}/planted.txt"),
        "the user's settings": append(facts["config"]),
        "the user's settings, read": opens(facts["config"], os.O_RDONLY),
        "a socket outside": connects(f"{outside}/docker.sock"),
        "a socket in the project": connects("agent.sock"),
        "an abstract socket": connects(f"\0{facts['abstract']}"),
        "the loopback": connects(("127.0.0.1", int(facts["port"]))),
        "shared memory": lambda: _LIBC.shmget(int(facts["shm"]), 0, 0) >= 0,
        "the host's name": lambda: _LIBC.sethostname(b"evil", 4) == 0,
        "another root": lambda: os.chroot("/tmp") is None,
        "variables": leaks(["sk-test-key", "/agent.sock-of-ssh", "unix:path=/bus", "wayland-9"]),
        "other processes": sees_process(facts["process"]),
        "the session": lambda: os.getsid(0) == 0,  # its leader is in no namespace of ours
        "namespaces": lambda: bool(set(namespaces()) & set(facts["namespaces"].split())),
        "a process left behind": stays_behind(facts["left"]),
    }


_DEVICES = {
    *("core", "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout"),
    *("tty", "urandom", "zero", "console"),
}


def main() -> None:
    """Try them all, whatever one of them ends with."""
    facts = json.loads(sys.argv[1])
    attacks = {} if facts.get("only") == "project" else on_system(facts)
    attacks |= in_project(facts["other"])
    for name, attack in attacks.items():
        try:
            if attack() is True:
                print("ESCAPED", name)
        except (OSError, subprocess.SubprocessError) as error:
            print("held", name, error)
    print("TRIED", len(attacks))


if __name__ == "__main__":
    main()
