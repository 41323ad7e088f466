"""Write the graph of the default embedder, and weights of 8 bits for it.

    python benchmarks/build_encoder.py [OUT]
    python benchmarks/build_encoder.py --weights [--source FOLDER] [--name NAME] [OUT]

The graph is the six layers of all-MiniLM-L6-v2, without weights.
Needs the package `onnx`, which only this script and its test use. The graph is 11 KB and ships with
the package, so that nobody needs torch, or an export, to embed. Weights are named in it and handed
over when it is loaded (`semcache/models/minilm.py`). Attention, the norms with their sums and the
activation are the fused operators that onnxruntime publishes as `com.microsoft`.

`--weights`: FOLDER has `model.safetensors` and `tokenizer.json`, by default the packaged ones. OUT
becomes a folder with `weights.safetensors`, where each row of a matrix is 8 bits a number and one
fp32 scale, `tokenizer.json`, a notice with the data they learned of, and `manifest.json`. They are
computed in fp32, and are a model of their own: with `--texts` it prints how far vectors are from
the packaged ones.
"""

import argparse
import hashlib
import json
import math
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper
from safetensors.numpy import load_file, save_file

from semcache.models.minilm import EPSILON, GRAPH, LAYERS, MiniLMEmbedder
from semcache.models.weights import SCALE, Manifest, packaged_weights

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


NOTICE = """Weights of this folder: {name}, made of all-MiniLM-L6-v2 (sentence-transformers,
Apache License 2.0, https://www.apache.org/licenses/LICENSE-2.0) and changed: {trained}each
row of a matrix was rounded to 8 bits a number with one scale.
"""
TRAINED = (
    "they were trained\nfurther by benchmarks/train_embedder.py on the data below (training.json "
    "tells steps and seed); "
)
DATA = {
    "advising": "jkkummerfeld/text2sql-data, CC BY 4.0",
    "atis": "jkkummerfeld/text2sql-data, see that repository",
    "ehrsql2024": "glee4810/ehrsql-2024, CC BY 4.0",
    "home_assistant": "home-assistant/intents, CC BY 4.0",
    "mimicsql": "wangpinggl/TREQS, MIT",
    "nvbench": "Thanksyy/ncNet, MIT",
    "overnight": "rhythmcao/semantic-parsing-dual (Overnight), see that repository",
    "overnight_basketball": "the same",
    "overnight_housing": "the same",
    "overnight_publications": "the same",
    "scholar": "jkkummerfeld/text2sql-data, see that repository",
    "sgd": "google-research-datasets/dstc8-schema-guided-dialogue, CC BY-SA 4.0",
    "spider_syn": "ygan/Spider-Syn, MIT; questions of Spider, CC BY-SA 4.0",
    "workbench": "olly-styles/WorkBench, MIT",
}
"""Where data that weights were trained on is from, and under which licence."""


def notice(name: str, training: Path) -> str:
    """Return the notice of weights: where they are from, and of what they learned."""
    if not training.is_file():
        return NOTICE.format(name=name, trained="")
    said = json.loads(training.read_text(encoding="utf-8"))
    learned = [*said["pairs"], *said["streams"]]
    lines = [f"{each}: {DATA.get(each, 'of their own')}\n" for each in sorted(learned)]
    return NOTICE.format(name=name, trained=TRAINED) + "\n" + "".join(lines)


def rounded(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a matrix of 8 bits and the scale of each of its rows."""
    scales = np.maximum(np.abs(matrix).max(axis=1), 1e-12) / 127
    return np.rint(matrix / scales[:, None]).astype(np.int8), scales.astype(np.float32)


def write_weights(
    source: Path, out: Path, *, name: str, strict_cosine: float | None = None
) -> None:
    """Write weights of 8 bits a number, and all that loading them needs, into the folder `out`."""
    out.mkdir(parents=True, exist_ok=True)
    kept: dict[str, np.ndarray] = {}
    for key, tensor in load_file(source / "model.safetensors").items():
        if not key.startswith(("embeddings.", "encoder.")) or tensor.dtype != np.float32:
            continue  # the pooler, which sentence vectors don't use, and numbers of positions
        if tensor.ndim == 1:
            kept[key] = tensor
        else:
            kept[key], kept[key + SCALE] = rounded(tensor)
    save_file(kept, out / Manifest.WEIGHTS)
    shutil.copyfile(source / "tokenizer.json", out / "tokenizer.json")
    training = source / "training.json"
    if training.is_file():
        shutil.copyfile(training, out / training.name)
    (out / "NOTICE").write_text(notice(name, training), encoding="utf-8")
    digests = {
        file: hashlib.sha256((out / file).read_bytes()).hexdigest()
        for file in (Manifest.WEIGHTS, "tokenizer.json")
    }
    told = {"name": name, "files": digests}
    if strict_cosine is not None:
        told["strict_cosine"] = strict_cosine
    manifest = json.dumps(told, indent=1)
    (out / Manifest.FILE).write_text(f"{manifest}\n", encoding="utf-8")


def compared(out: Path, texts: Sequence[str]) -> str:
    """Return how far vectors by the weights of `out` are from the packaged ones."""
    ours, theirs = MiniLMEmbedder(out, memo=0).embed(texts), MiniLMEmbedder(memo=0).embed(texts)
    away = 1 - (ours * theirs).sum(axis=1)
    near, far = ours @ ours.T, theirs @ theirs.T
    np.fill_diagonal(near, -1)
    np.fill_diagonal(far, -1)
    same = (near.argmax(axis=1) == far.argmax(axis=1)).mean()
    return (
        f"{len(texts)} texts: 1 - cosine {away.mean():.1e} in the mean, {away.max():.1e} at most; "
        f"cosines between texts differ by {np.abs(near - far).max():.3f} at most; "
        f"the nearest neighbor is the same for {same:.1%}"
    )


def main(argv: Sequence[str]) -> int:
    """Write the graph or weights; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--weights", action="store_true", help="write weights, not the graph")
    parser.add_argument("--source", type=Path, metavar="FOLDER", help="weights in fp32")
    parser.add_argument("--name", default="all-MiniLM-L6-v2-8bit", help="in the fingerprint")
    parser.add_argument(
        "--strict-cosine", type=float, metavar="COSINE", help="as strict_cosine.py found it"
    )
    parser.add_argument("--texts", type=Path, nargs="*", default=[], help="streams to compare on")
    parser.add_argument("out", type=Path, nargs="?")
    given = parser.parse_args(argv)
    models = Path(__file__).parent.parent / "semcache" / "models"
    if not given.weights:
        out = given.out or models / GRAPH
        out.write_bytes(graph())
        print(f"{out}: {out.stat().st_size} bytes, onnx {onnx.__version__}")
        return 0
    out = given.out or models / "minilm"
    write_weights(
        given.source or packaged_weights(),
        out,
        name=given.name,
        strict_cosine=given.strict_cosine,
    )
    print(f"{out}: {sum(file.stat().st_size for file in out.iterdir()) / 1e6:.1f} MB")
    if given.texts:
        lines = (line for file in given.texts for line in file.open(encoding="utf-8"))
        texts = list(dict.fromkeys(json.loads(line)["text"] for line in lines))
        print(compared(out, texts[:: max(1, len(texts) // 2000)][:2000]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
