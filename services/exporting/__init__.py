"""Versions as files that run without Ballast: ONNX models and C99 headers."""
