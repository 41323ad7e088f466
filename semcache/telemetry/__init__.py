"""Telemetry: what the core reports, for OpenTelemetry and Prometheus."""
