"""Do the published experiments come out the same?

A *lab* is a set of experiments (`base`), each of which measures, draws and judges: what was published, what we found,
and whether the two agree. Verdicts are computed from the measurements (`verdicts`), and processor time is what is
measured (`measuring`). `running` runs a lab and writes one HTML page (`page`, `plots`) and the same as JSON. The labs
are the packages in here: `filtering` is about matching algorithms, `topk` about ranked subscriptions,
`routing` about brokers, and `distributed` about networks without a centre.
"""

from tamis_lab.experiments.base import Claim, Experiment, Judgement, Result, Scale
from tamis_lab.experiments.errors import DisagreementError, LabError, MissingPlotsError
from tamis_lab.experiments.running import LABS, Report, run, write

__all__ = [
    "LABS",
    "Claim",
    "DisagreementError",
    "Experiment",
    "Judgement",
    "LabError",
    "MissingPlotsError",
    "Report",
    "Result",
    "Scale",
    "run",
    "write",
]
