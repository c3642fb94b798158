# SPDX-License-Identifier: Apache-2.0
"""Tags, their keys, and the equations and marks recorded while JAX traces."""
