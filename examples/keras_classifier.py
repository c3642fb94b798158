# SPDX-License-Identifier: Apache-2.0
"""A Keras model on JAX, tagged by rules: layer names are scopes.

Its training step is Keras's own, `model.stateless_call` and an optimizer.
"""

import os

os.environ["KERAS_BACKEND"] = "jax"

import jax
import keras
from keras import layers
from show import show

import hlotag

RULES = [
    hlotag.Rule({"part": "stem"}, scope="stem", grad={"part": "stem_backward"}),
    hlotag.Rule({"part": "head"}, scope="head", op="dot_general", phase="backward"),
]

keras.utils.set_random_seed(0)
model = keras.Sequential(
    [
        layers.Input((8, 8, 1)),
        layers.Conv2D(8, 3, activation="relu", name="stem"),
        layers.BatchNormalization(),
        layers.Flatten(),
        layers.Dense(4, name="head"),
    ]
)
optimizer = keras.optimizers.Adam(1e-3)
optimizer.build(model.trainable_variables)


@jax.jit
def step(trainable, rest, state, images, labels):
    def loss(trainable):
        logits, updated = model.stateless_call(trainable, rest, images, training=True)
        return keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True).mean(), updated

    (value, rest), gradients = jax.value_and_grad(loss, has_aux=True)(trainable)
    trainable, state = optimizer.stateless_apply(state, gradients, trainable)
    return trainable, rest, state, value


def main():
    images = jax.random.normal(jax.random.key(0), (16, 8, 8, 1))
    labels = jax.random.randint(jax.random.key(1), (16,), 0, 4)
    variables = model.trainable_variables, model.non_trainable_variables, optimizer.variables
    values = [[variable.value for variable in some] for some in variables]
    show(step, *values, images, labels, rules=RULES)


if __name__ == "__main__":
    main()
