"""Seeded twins of the YOLO detectors for 640 x 640 whose compile figures the vendor published.

Same graph as the public YOLOv8n and YOLO11n exports that the vendor's model zoo compiles: the head is cut before its
decoding, each of the three maps gives class scores and box distributions as NHWC. Weights as in `published_models`.
"""

from __future__ import annotations

import numpy as np
import onnx
from support.published_models import GAIN, Network

SIDE = 640
CLASSES = 80
BOX = 64
WIDTHS = (64, 128, 256)
"""Channels of the maps that enter the head, 80, 40 and 20 cells wide."""


class Detector(Network):
    """What a detector has beyond a classifier."""

    def sppf(self, name: str, x: str, width: int) -> str:
        """Add the pyramid of three chained 5 x 5 poolings."""
        links = [self.conv(f"{name}/cv1", x, (width, width // 2))]
        window = {"kernel_shape": [5, 5], "strides": [1, 1], "pads": [2] * 4}
        for k in ("m", "m_1", "m_2"):
            links.append(self.node("MaxPool", f"{name}/{k}/MaxPool", [links[-1]], **window))
        joined = self.node("Concat", f"{name}/Concat", links, axis=1)
        return self.conv(f"{name}/cv2", joined, (2 * width, width))

    def upsample(self, name: str, x: str) -> str:
        """Double height and width by repeating."""
        region = self.constant(f"{name}.region", np.zeros(0, np.float32))
        scales = self.constant(f"{name}.scales", np.asarray([1, 1, 2, 2], np.float32))
        return self.node("Resize", f"{name}/Resize", [x, region, scales], mode="nearest", nearest_mode="floor",
                         coordinate_transformation_mode="asymmetric")  # fmt: skip

    def join(self, name: str, a: str, b: str) -> str:
        """Concatenate two maps over their channels."""
        return self.node("Concat", f"{name}/Concat", [a, b], axis=1)

    def detect(self, name: str, maps: list[str], *, light: bool) -> onnx.ModelProto:
        """Add the head; ``light`` builds the class branch of depthwise and pointwise convolutions."""
        outputs: dict[str, list[int]] = {}
        for k, (x, width) in enumerate(zip(maps, WIDTHS, strict=True)):
            box, score, cells = f"{name}/cv2.{k}", f"{name}/cv3.{k}", SIDE // (8 << k)
            h, size = x, width
            for step in range(2):
                if light:
                    h = self.conv(f"{score}/{step}.0", h, (size, size), 3, groups=size)
                    h = self.conv(f"{score}/{step}.1", h, (size, CLASSES))
                else:
                    h = self.conv(f"{score}/{step}", h, (size, CLASSES), 3)
                size = CLASSES
            h = self.conv(f"{score}/2", h, (CLASSES, CLASSES), activate=False)
            self.map_out(outputs, f"score{k}", h, cells, CLASSES)
            h = self.conv(f"{box}/1", self.conv(f"{box}/0", x, (width, BOX), 3), (BOX, BOX), 3)
            self.map_out(outputs, f"box{k}", self.conv(f"{box}/2", h, (BOX, BOX), activate=False), cells, BOX)
        return self.model(SIDE, outputs)

    def map_out(self, outputs: dict[str, list[int]], name: str, x: str, cells: int, width: int) -> None:
        """Turn a map to NHWC and make it an output of the model."""
        self.nodes.append(onnx.helper.make_node("Transpose", [x], [name], name=f"/{name}/Transpose", perm=[0, 2, 3, 1]))
        outputs[name] = [1, cells, cells, width]


def yolov8n(seed: int = 8) -> onnx.ModelProto:
    """Build the twin of YOLOv8n."""
    net = Detector(seed)
    x = net.conv("/model.1", net.conv("/model.0", "images", (3, 16), 3, 2), (16, 32), 3, 2)
    x = net.c2f("/model.2", x, (32, 32))
    kept = []
    for layer, width, repeats in ((3, 32, 2), (5, 64, 2), (7, 128, 1)):
        x = net.conv(f"/model.{layer}", x, (width, 2 * width), 3, 2)
        x = net.c2f(f"/model.{layer + 1}", x, (2 * width, 2 * width), repeats)
        kept.append(x)
    c4, c6, _ = kept
    p9 = net.sppf("/model.9", x, 256)
    up = net.join("/model.11", net.upsample("/model.10", p9), c6)
    p12 = net.c2f("/model.12", up, (384, 128), residual=False)
    up = net.join("/model.14", net.upsample("/model.13", p12), c4)
    p15 = net.c2f("/model.15", up, (192, 64), residual=False)
    down = net.join("/model.17", net.conv("/model.16", p15, (64, 64), 3, 2), p12)
    p18 = net.c2f("/model.18", down, (192, 128), residual=False)
    down = net.join("/model.20", net.conv("/model.19", p18, (128, 128), 3, 2), p9)
    p21 = net.c2f("/model.21", down, (384, 256), residual=False)
    return net.detect("/model.22", [p15, p18, p21], light=False)


def yolo11n(seed: int = 11) -> onnx.ModelProto:
    """Build the twin of YOLO11n."""
    net = Detector(seed)
    x = net.conv("/model.1", net.conv("/model.0", "images", (3, 16), 3, 2), (16, 32), 3, 2)
    x = net.c2f("/model.2", x, (32, 64), ratio=0.25, hidden=0.5)
    x = net.conv("/model.3", x, (64, 64), 3, 2)
    c4 = net.c2f("/model.4", x, (64, 128), ratio=0.25, hidden=0.5)
    c6 = net.c2f("/model.6", net.conv("/model.5", c4, (128, 128), 3, 2), (128, 128), nested=True)
    x = net.c2f("/model.8", net.conv("/model.7", c6, (128, 256), 3, 2), (256, 256), nested=True)
    p10 = net.c2psa("/model.10", net.sppf("/model.9", x, 256), 256, 400, kept=GAIN)
    up = net.join("/model.12", net.upsample("/model.11", p10), c6)
    p13 = net.c2f("/model.13", up, (384, 128), hidden=0.5)
    up = net.join("/model.15", net.upsample("/model.14", p13), c4)
    p16 = net.c2f("/model.16", up, (256, 64), hidden=0.5)
    down = net.join("/model.18", net.conv("/model.17", p16, (64, 64), 3, 2), p13)
    p19 = net.c2f("/model.19", down, (192, 128), hidden=0.5)
    down = net.join("/model.21", net.conv("/model.20", p19, (128, 128), 3, 2), p10)
    p22 = net.c2f("/model.22", down, (384, 256), nested=True)
    return net.detect("/model.23", [p16, p19, p22], light=True)
