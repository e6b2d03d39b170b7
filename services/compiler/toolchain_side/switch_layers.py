"""Put every emulated quantisation of a calibrated ONNX behind a switch, so that one session serves all runs.

Imported by ``measure_layers.py``, inside the toolchain's own interpreter. Imports nothing of boardlift.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from run_quantised import open_session

CALIBRATION = "HzCalibration"
PASSIVE = {"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Identity"}
FLOAT, INT8, INT16 = 0, 1, 2
SWITCH_8, SWITCH_16 = "bl_switch8_", "bl_switch16_"


class Graph:
    """Who makes and takes what in a calibrated model."""

    def __init__(self, model):
        """Index the model."""
        self.model = model
        self.constants = {i.name for i in model.graph.initializer}
        self.calibrated = {n.output[0]: n for n in model.graph.node if n.op_type == CALIBRATION}
        self.producer = {o: n for n in model.graph.node for o in n.output}
        self.consumers = {}
        for node in model.graph.node:
            for name in node.input:
                self.consumers.setdefault(name, []).append(node)

    def fed(self, node):
        """Tell whether a node has a quantised input."""
        return any(name in self.calibrated for name in node.input)

    def owner(self, node):
        """Return the layer a node belongs to: a passive operator follows the layer behind it."""
        at = node
        for _ in range(64):
            if at.op_type not in PASSIVE and at.op_type != CALIBRATION:
                return at if self.fed(at) else node
            after = self.consumers.get(at.output[0], [])
            if not after:
                return node
            at = after[0]
        return node

    def layers(self):
        """Return layer -> (operator type, output tensor), in order."""
        found = {}
        for node in self.model.graph.node:
            if node.op_type != CALIBRATION and self.fed(node) and self.owner(node) is node:
                found[node.name] = (node.op_type, node.output[0])
        return found


def fold_weights(model, folder):
    """Return the quantised constants by name: they are the same in every run."""
    constants = {i.name: i for i in model.graph.initializer}
    nodes = [n for n in model.graph.node if n.op_type == CALIBRATION and n.input[0] in constants]
    if not nodes:
        return {}
    names = [n.output[0] for n in nodes]
    small = helper.make_model(
        helper.make_graph(
            nodes,
            "weights",
            [helper.make_tensor_value_info("bl_unused", TensorProto.FLOAT, [1])],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names],
            [constants[name] for name in sorted({n.input[0] for n in nodes})],
        ),
        opset_imports=model.opset_import,
    )
    small.ir_version = model.ir_version
    small.graph.node.append(helper.make_node("Identity", ["bl_unused"], ["bl_used"], "bl_used"))
    small.graph.output.append(helper.make_tensor_value_info("bl_used", TensorProto.FLOAT, [1]))
    session = open_session(small, folder + "/weights.onnx")
    values = session.run_direct(names, {"bl_unused": np.zeros(1, np.float32)})
    return {name: np.asarray(value, np.float32) for name, value in zip(names, values, strict=True)}


def as_int16(node):
    """Return a copy of a calibration node for int16."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.name += "_bl16"
    copy.output[0] += "_bl16"
    thresholds = next(list(a.floats) for a in node.attribute if a.name == "thresholds")
    for attribute in copy.attribute:
        if attribute.name == "qtype":
            attribute.s = b"int16"
        elif attribute.name == "scales":
            del attribute.floats[:]
            attribute.floats.extend(t / 32767.0 for t in thresholds)
    return copy


class Switched:
    """A calibrated model whose layers can be switched between float, int8 and int16."""

    def __init__(self, model, folder):
        """Put every emulated quantisation behind its layer's switches."""
        folded = fold_weights(model, folder)
        self.graph = Graph(model)
        self.layers = self.graph.layers()
        self.number = {name: k for k, name in enumerate(self.layers)}
        self.model = onnx.ModelProto()
        self.model.CopyFrom(model)
        self._made = set()
        for name, value in folded.items():
            self.model.graph.initializer.append(numpy_helper.from_array(value, name))
        self._folded = folded
        del self.model.graph.node[:]
        for node in model.graph.node:
            self._copy(node)
        for k in range(len(self.layers)):
            for prefix in (SWITCH_8, SWITCH_16):
                self.model.graph.input.append(helper.make_tensor_value_info(f"{prefix}{k}", TensorProto.BOOL, [1]))

    def _copy(self, node):
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        outputs = {o.name for o in self.model.graph.output}
        if node.op_type == CALIBRATION:
            if node.output[0] in self._folded:
                return
            if node.output[0] in outputs:
                copy.op_type, copy.domain = "Identity", ""
                del copy.attribute[:]
            self.model.graph.node.append(copy)
            if node.input[0] not in self.graph.constants and node.output[0] not in outputs:
                self.model.graph.node.append(as_int16(node))
            return
        layer = self.graph.owner(node).name
        for position, name in enumerate(node.input):
            source = self.graph.calibrated.get(name)
            if source is not None:
                copy.input[position] = self._behind_switch(layer, name) if layer in self.number else source.input[0]
        self.model.graph.node.append(copy)

    def _behind_switch(self, layer, name):
        k = self.number[layer]
        target = f"bl{k}_{name}"
        if target not in self._made:
            self._made.add(target)
            plain = self.graph.calibrated[name].input[0]
            wide = name if plain in self.graph.constants else f"{name}_bl16"
            add = self.model.graph.node.append
            add(helper.make_node("Where", [f"{SWITCH_16}{k}", wide, plain], [f"{target}_16"], f"{target}_16"))
            add(helper.make_node("Where", [f"{SWITCH_8}{k}", name, f"{target}_16"], [target], target))
        return target

    def switches(self, modes):
        """Return the switch inputs of a run; layers that are not named run in float."""
        feed = {}
        for name, k in self.number.items():
            mode = modes.get(name, FLOAT)
            feed[f"{SWITCH_8}{k}"] = np.array([mode == INT8])
            feed[f"{SWITCH_16}{k}"] = np.array([mode == INT16])
        return feed
