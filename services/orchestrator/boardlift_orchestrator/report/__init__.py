"""The report of a job: one JSON that is the truth, one self-contained HTML, JUnit XML."""
