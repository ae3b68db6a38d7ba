"""The manifests of packaging/kubernetes: rendered by kubectl, and checked against the types of the
Kubernetes API and of the Prometheus Operator. The types are npm packages (kubernetes/package-lock.json),
and the TypeScript compiler checks them: it rejects fields that the API does not have, wrong types, and
missing fields."""
import json
import os
import pathlib
import shutil
import subprocess

import npm
import yaml
from harness import Skipped

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / "packaging/kubernetes"
TYPES = pathlib.Path(__file__).parent / "kubernetes"
BUILD = ROOT / "build/kubernetes-types"


def copy_to(folder):
    """Copies the manifests as the repository has them, and makes the passwords."""
    copy = shutil.copytree(SOURCE, folder / "kubernetes",
                           ignore=shutil.ignore_patterns("users.acl", "app-password", "password"))
    subprocess.run([copy / "passwords.sh"], check=True)
    return copy


def render(folder):
    """The objects that `kubectl apply -k` of this folder would create."""
    if shutil.which("kubectl") is None:
        raise Skipped("kubectl is not installed")
    done = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise AssertionError(f"kubectl kustomize: {done.stderr}")
    return list(yaml.safe_load_all(done.stdout))


def only(objects, kind, name=""):
    """The object of this kind, of which there is one. Its name begins with `name`."""
    found = [o for o in objects if o["kind"] == kind and o["metadata"]["name"].startswith(name)]
    if len(found) != 1:
        raise AssertionError(f"{len(found)} objects of the kind {kind} {name}")
    return found[0]


def type_of(item):
    """The module and the name of the type of an object."""
    group = item["apiVersion"]
    package = "kubernetes-models"
    if group.startswith("monitoring."):
        package = "@kubernetes-models/prometheus-operator"
    return f"{package}/{group}/{item['kind']}", f"I{item['kind']}"


def type_errors(objects, folder):
    """The errors of these objects, as the compiler reports them."""
    npm.install(TYPES, BUILD)
    text = ""
    for number, item in enumerate(objects):
        module, name = type_of(item)
        text += (f"import type {{ {name} as T{number} }} from {json.dumps(module)};\n"
                 f"export const object{number}: T{number} = {json.dumps(item, indent=1)};\n")
    project = folder / "types"
    project.mkdir(exist_ok=True)
    (project / "objects.ts").write_text(text)
    if not (project / "node_modules").exists():
        os.symlink(BUILD / "node_modules", project / "node_modules")
    done = subprocess.run(
        ["node", str(BUILD / "node_modules/typescript/bin/tsc"), "--noEmit", "--strict", "--skipLibCheck",
         "--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler", "--preserveSymlinks",
         "objects.ts"], cwd=project, capture_output=True, text=True, check=False)
    errors = [line for line in done.stdout.splitlines() if "error TS" in line]
    if done.returncode != 0 and not errors:
        raise AssertionError(f"tsc: {done.stdout}{done.stderr}")
    return errors
