"""A fitted clustering as one self-contained HTML file, as numbers, or as a few lines for a notebook."""

from kernelweave.evaluation.report import ReportFacts, summary_html, write_report

__all__ = ["ReportFacts", "summary_html", "write_report"]
