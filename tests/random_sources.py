# SPDX-License-Identifier: Apache-2.0
"""Random programs as source text, each operation with a line of its own, for measuring what is derived wrongly."""

import random
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

import derivative_programs
from ground_truth import Program


def listed(text: str) -> tuple[str, ...]:
    """The expressions of a text, which has semicolons between them."""
    return tuple(text.strip().replace(";\n", "; ").split("; "))


UNARY = listed("""
jnp.sin({0}); jnp.cos({0}); jnp.tanh({0}); jnp.exp({0} * 0.1); {0} * 0.7; {0} / 3.0; -{0}; jnp.abs({0}); jax.nn.relu({0});
jax.nn.gelu({0}); jax.nn.silu({0}); jax.nn.sigmoid({0}); jax.nn.softplus({0}); jax.nn.softmax({0}); jax.nn.log_softmax({0});
({0} - {0}.mean(-1, keepdims=True)) / jnp.sqrt({0}.var(-1, keepdims=True) + 1e-3); jnp.cumsum({0}, 0) * 0.2; {0}[::-1];
jnp.roll({0}, 1, 0); {0} ** 2; {0} ** 3; jnp.log1p({0} ** 2); jnp.sqrt({0} ** 2 + 1.0); lax.rsqrt({0} ** 2 + 1.0);
jnp.clip({0}, -0.5, 0.5); jnp.sort({0}, -1); {0}[jnp.array([2, 0, 1, 3])]; {0}.at[0].set(0.0); {0}.at[1].add({0}[2]);
jnp.concatenate([{0}[:, 4:], {0}[:, :4]], 1); {0}.reshape(8, 4).T; jnp.broadcast_to({0}.sum(0), (4, 8));
{0} + {0}.max(-1, keepdims=True); jnp.einsum('ij,kj->ki', {0}, {0}) @ {0}; jnp.where({0} > 0, {0}, {0} * 0.1);
jnp.square({0}); jnp.flip({0}, 1); jnp.pad({0}, ((1, 0), (0, 0)))[:4]; jnp.tile({0}[:2], (2, 1)); lax.cumsum({0}, axis=1);
jnp.arctan({0}); jnp.sinh({0}); jnp.expm1({0} * 0.1); lax.stop_gradient({0}) * {0};
jax.nn.one_hot(jnp.argmax({0}, -1), 8) * {0}; jnp.linalg.norm({0}, axis=-1, keepdims=True) * {0};
{0}.astype(jnp.bfloat16).astype(jnp.float32); lax.dynamic_slice({0}, (1, 0), (2, 8)).sum(0) + {0};
jnp.prod({0}[:, :2], -1, keepdims=True) + {0}; jnp.logaddexp({0}, 0.1); jnp.take_along_axis({0}, jnp.argsort({0}, 1), 1);
jnp.sign({0}) * {0}; jnp.minimum({0}, 0.3)
""")
BINARY = listed("""
{0} + {1}; {0} * {1}; {0} - {1}; {0} / ({1} ** 2 + 1.0); jnp.maximum({0}, {1}); jnp.where({0} > 0.1, {0}, {1});
({0} @ {1}.T) @ {0}; jnp.arctan2({0}, {1} ** 2 + 1.0); jnp.einsum('ij,ij->i', {0}, {1})[:, None] * {0};
jnp.stack([{0}, {1}]).mean(0); {0} + {1} + {0} * {1}
""")
PRODUCTS = listed("""
{0} @ {w}; {0} @ {w} + b; jnp.tanh({0} @ {w}); ({0} @ {w}) @ {w}.T; jnp.dot({0}, {w}.T); jnp.einsum('ij,kj->ik', {0}, {w});
{0} * {w}[0]; {0} @ ({w} * 0.5)
""")
ENDS = listed("{0}.sum(); ({0} ** 2).mean(); jnp.sin({0}).sum(); {0}.max(); jnp.linalg.norm({0})")
TRANSFORMS = {
    name: getattr(derivative_programs, name) for name in ("everything", "each", "of_batch", "hessian_vector", "second_gradient")
}
# A call of the function `f` that makes `y` of `a`; `g` is another function.
CALLS = (
    (0.12, "{y} = {f}({a}, w, v, b)", "{y} = {f}({y}, v, w, b)"),
    (0.20, "{y} = jax.jit({f})({a}, w, v, b)", "{y} = jax.jit({f})({y}, v, w, b)"),
    (0.28, "{y} = jax.checkpoint({f})({a}, w, v, b)", ""),
    (0.36, "{y}, _ = lax.scan(lambda c, _: ({f}(c, w, v, b), None), {a}, None, length=2)", ""),
    (0.40, "{y}, _ = lax.scan(lambda c, r: ({f}(c, w, v, r), c.sum()), {a}, w[:3])", ""),
    (0.45, "{y} = lax.cond({a}.sum() > 0, lambda x: {f}(x, w, v, b), lambda x: {g}(x, v, w, b), {a})", ""),
)


class _Writer:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._count = 0
        self._functions: list[str] = []

    def source(self) -> str:
        body, values = self._block(["x"], 2, "    ", self._random.randint(3, 7))
        end = self._random.choice(ENDS).format(values[-1])
        return "\n".join(self._functions) + f"\ndef program(x, w, v):\n    b = v[1]\n{body}    return {end}\n"

    def _name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def _expression(self, values: list[str]) -> str:
        value, kind = self._random.choice(values[-3:]), self._random.random()
        if kind < 0.35:
            return self._random.choice(PRODUCTS).format(value, w=self._random.choice("wv"))
        if kind < 0.75:
            return self._random.choice(UNARY).format(value)
        return self._random.choice(BINARY).format(value, self._random.choice(values))

    def _function(self, depth: int) -> str:
        name = self._name("h")
        body, values = self._block(["x"], depth - 1, "    ", self._random.randint(1, 3))
        self._functions.append(f"def {name}(x, w, v, b):\n{body}    return {values[-1]}\n")
        return name

    def _call(self, kind: float, value: str, result: str, depth: int) -> list[str]:
        once, again = next((once, again) for limit, once, again in CALLS if kind < limit)
        functions = {"f": self._function(depth), "g": self._function(depth) if "{g}" in once else ""}
        lines = [once.format(y=result, a=value, **functions)]
        if again and self._random.random() < 0.5:
            lines.append(again.format(y=result, **functions))
        return lines

    def _statement(self, values: list[str], result: str, depth: int) -> list[str]:
        kind, value = self._random.random(), self._random.choice(values[-2:])
        if depth == 0 or kind >= 0.62:
            return [f"{result} = {self._expression(values)}"]
        if kind < CALLS[-1][0]:
            return self._call(kind, value, result, depth)
        count = self._random.randint(1, 3)
        if kind < 0.55:
            body, inner = self._block(["z"], depth - 1, "    ", count)
            head = [f"z = {value}", f"for _ in range({self._random.randint(2, 4)}):"]
            return [*head, *body.splitlines(), f"    z = {inner[-1]}", f"{result} = z"]
        body, inner = self._block(values, depth - 1, "    ", count)
        return [f"with jax.named_scope({result!r}):", *body.splitlines(), f"    {result} = {inner[-1]}"]

    def _block(self, values: list[str], depth: int, indent: str, count: int) -> tuple[str, list[str]]:
        text = ""
        for _ in range(count):
            result = self._name("y")
            text += "".join(f"{indent}{line}\n" for line in self._statement(values, result, depth))
            values = [*values, result]
        return text, values


def program(seed: int, transform: str) -> Program:
    """The random program of that number; the same in every process."""
    names: dict[str, Any] = {"jax": jax, "jnp": jnp, "lax": lax}
    exec(compile(_Writer(seed).source(), f"/random/{seed}.py", "exec"), names)
    return Program(names["program"], (derivative_programs.X, derivative_programs.W, derivative_programs.V), TRANSFORMS[transform])
