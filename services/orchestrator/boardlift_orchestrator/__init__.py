"""Orchestrator: durable jobs on JetStream, boards, verdicts and reports."""
