"""Write the graph of the default embedder: the six layers of all-MiniLM-L6-v2, without weights.

    python benchmarks/build_encoder.py [OUT]

Needs the package `onnx`, which only this script and its test use. The graph is 11 KB and ships with
the package, so that nobody needs torch, or an export, to embed. Weights are named in it and handed
over when it is loaded (`semcache/models/minilm.py`). Attention, the norms with their sums and the
activation are the fused operators that onnxruntime publishes as `com.microsoft`.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import onnx
from onnx import NodeProto, TensorProto, helper

from semcache.models.minilm import EPSILON, GRAPH, LAYERS

WIDTH, HEADS, INNER = 384, 12, 1536
"""`hidden_size`, `num_attention_heads` and `intermediate_size` of the weights."""
FUSED = "com.microsoft"
ATTENTION = {"qkv.weight": (WIDTH, 3 * WIDTH), "qkv.bias": (3 * WIDTH,)}
SHAPES = ATTENTION | {
    "attention.weight": (WIDTH, WIDTH),
    "attention.bias": (WIDTH,),
    "attention.norm.weight": (WIDTH,),
    "attention.norm.bias": (WIDTH,),
    "inner.weight": (WIDTH, INNER),
    "inner.bias": (INNER,),
    "outer.weight": (INNER, WIDTH),
    "outer.bias": (WIDTH,),
    "norm.weight": (WIDTH,),
    "norm.bias": (WIDTH,),
}
"""Weights of a layer, as `encoder_weights` names and turns them."""


def graph() -> bytes:
    """Return the serialized graph: embedded tokens and their mask in, hidden states out."""
    nodes: list[NodeProto] = []
    x = "embedded"
    for layer in range(LAYERS):
        out = "hidden" if layer == LAYERS - 1 else f"layer.{layer}.out"
        nodes += nodes_of(f"layer.{layer}.", x, out)
        x = out
    tokens = ["batch", "tokens"]
    body = helper.make_graph(
        nodes,
        "minilm",
        [
            helper.make_tensor_value_info("embedded", TensorProto.FLOAT, [*tokens, WIDTH]),
            helper.make_tensor_value_info("mask", TensorProto.INT32, tokens),
        ],
        [helper.make_tensor_value_info("hidden", TensorProto.FLOAT, [*tokens, WIDTH])],
        list(weights()),
    )
    # Opset 17 and IR 9 are read by every onnxruntime from 1.17 on, which the package asks for.
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(FUSED, 1)]
    serialized: bytes = helper.make_model(
        body, opset_imports=opsets, ir_version=9
    ).SerializeToString(deterministic=True)
    return serialized


def nodes_of(layer: str, x: str, out: str) -> list[NodeProto]:
    """Return the nodes of one layer, from the states `x` to the states `out`."""
    attended, projected, normed = (layer + each for each in ("attended", "projected", "normed"))
    wide, active, narrow = (layer + each for each in ("wide", "active", "narrow"))
    return [
        fused(
            "Attention",
            [x, layer + "qkv.weight", layer + "qkv.bias", "mask"],
            attended,
            num_heads=HEADS,
        ),
        helper.make_node("MatMul", [attended, layer + "attention.weight"], [projected]),
        norm(layer + "attention", layer + "attention.norm", [projected, x], normed),
        helper.make_node("MatMul", [normed, layer + "inner.weight"], [wide]),
        fused("BiasGelu", [wide, layer + "inner.bias"], active),
        helper.make_node("MatMul", [active, layer + "outer.weight"], [narrow]),
        norm(layer + "outer", layer + "norm", [narrow, normed], out),
    ]


def norm(dense: str, name: str, summands: list[str], out: str) -> NodeProto:
    """Return the layer norm `name` over two summands and the bias of the part `dense`."""
    inputs = [*summands, name + ".weight", name + ".bias", dense + ".bias"]
    return fused("SkipLayerNormalization", inputs, out, epsilon=EPSILON)


def fused(operator: str, inputs: list[str], out: str, **attributes: float) -> NodeProto:
    """Return a node of an operator that onnxruntime publishes."""
    return helper.make_node(operator, inputs, [out], domain=FUSED, **attributes)


def weights() -> Iterator[TensorProto]:
    """Yield the weights as tensors whose numbers are handed over when the graph is loaded."""
    for layer in range(LAYERS):
        for name, shape in SHAPES.items():
            tensor = TensorProto(name=f"layer.{layer}.{name}", data_type=TensorProto.FLOAT)
            tensor.dims.extend(shape)
            tensor.data_location = TensorProto.EXTERNAL
            # onnxruntime checks that a location and a length are there, and reads neither.
            for key, value in (("location", "weights"), ("length", str(4 * math.prod(shape)))):
                tensor.external_data.add(key=key, value=value)
            yield tensor


def main(argv: Sequence[str]) -> int:
    """Write the graph; return the exit status."""
    default = Path(__file__).parent.parent / "semcache" / "models" / GRAPH
    out = Path(argv[0]) if argv else default
    out.write_bytes(graph())
    print(f"{out}: {out.stat().st_size} bytes, onnx {onnx.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
