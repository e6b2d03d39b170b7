import io
import sys
import tarfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from sbom import components


def archive(**files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name.replace("__", "/"))
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    out.seek(0)
    return out


def test_lists_python_and_system_packages_once_each():
    metadata = "Metadata-Version: 2.1\nName: Nats.Py\nVersion: 2.11.0\nLicense: {}\n"
    image = archive(
        **{
            "opt/lib/nats_py-2.11.0.dist-info/METADATA": metadata.format("Apache-2.0") + "\nA body: not a field\n",
            "opt/again/nats_py-2.11.0.dist-info/METADATA": metadata.format("Apache-2.0"),
            "var/lib/dpkg/status": "Package: libssl3\nStatus: install ok installed\nVersion: 3.0.1\n\n"
            "Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n",
            "etc/METADATA": "Name: not one\n",
        }
    )
    assert components(image) == [
        {"type": "library", "name": "libssl3", "version": "3.0.1", "purl": "pkg:deb/debian/libssl3@3.0.1"},
        {
            "type": "library",
            "name": "nats-py",
            "version": "2.11.0",
            "purl": "pkg:pypi/nats-py@2.11.0",
            "licenses": [{"license": {"name": "Apache-2.0"}}],
        },
    ]


def test_reads_alpine_and_takes_the_licence_from_classifiers():
    image = archive(
        **{
            "lib/apk/db/installed": "C:Q1\nP:musl\nV:1.2.5-r0\nL:MIT\n\nP:zlib\nV:1.3-r1\nL:Zlib\n",
            "x/a-1.dist-info/METADATA": "Name: a\nVersion: 1\nClassifier: License :: OSI Approved :: BSD License\n",
        }
    )
    assert [(c["purl"], c["licenses"][0]["license"]["name"]) for c in components(image)] == [
        ("pkg:apk/alpine/musl@1.2.5-r0", "MIT"),
        ("pkg:apk/alpine/zlib@1.3-r1", "Zlib"),
        ("pkg:pypi/a@1", "BSD License"),
    ]
