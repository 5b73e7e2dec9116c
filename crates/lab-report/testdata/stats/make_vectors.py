#!/usr/bin/env python3
"""Makes the vectors that the tests of the laboratory's statistics compare with.

    python3 -m venv venv && venv/bin/pip install numpy==2.4.6 scipy==1.17.1 statsmodels==0.15.0 mpmath==1.3.0
    venv/bin/python make_vectors.py

writes median.json, effect.json, holm.json, ranks.json, slope.json, student.json and versions.json beside itself. Needed only to make them again, not to test.

Samples: normal, skewed (log-normal), heavy-tailed (Cauchy), with ties (whole seconds), constant,
tiny. All from numpy's PCG64 with a fixed seed.
"""

import json
import pathlib

import mpmath
import numpy
import scipy
import statsmodels
from scipy import stats
from statsmodels.stats.multitest import multipletests

HERE = pathlib.Path(__file__).parent
RNG = numpy.random.Generator(numpy.random.PCG64(20240131))
SIZES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 16, 25, 50]


def samples():
    """Name and values of each sample."""
    for n in SIZES:
        yield f"normal {n}", RNG.normal(200.0, 15.0, n)
        yield f"skewed {n}", RNG.lognormal(3.0, 1.0, n)
        yield f"heavy {n}", 1000.0 + RNG.standard_cauchy(n)
        yield f"tied {n}", RNG.integers(4, 8, n).astype(float)
        yield f"constant {n}", numpy.full(n, 42.0)


def write(name, rows):
    text = ",\n".join(json.dumps(row) for row in rows)
    (HERE / name).write_text(f"[\n{text}\n]\n")


def medians():
    for name, values in samples():
        yield {"name": name, "values": list(values), "median": float(numpy.median(values)),
               "low": float(values.min()), "high": float(values.max())}


def effects():
    """Student's interval and test for the mean of the logarithms of paired ratios."""
    for n in [2, 3, 4, 5, 6, 8, 10, 12, 20, 50]:
        for name, d in [
            ("normal", RNG.normal(0.05, 0.05, n)), ("clear", RNG.normal(0.7, 0.02, n)),
            ("equal", RNG.normal(0.0, 0.1, n)), ("wild", 0.1 * RNG.standard_cauchy(n)),
        ]:
            subject = RNG.lognormal(5.0, 0.3, n)
            other = subject / numpy.exp(d)
            d = numpy.log(subject / other)
            result = stats.ttest_1samp(d, 0.0)
            ends = result.confidence_interval(0.95)
            yield {"name": f"{name} {n}", "subject": list(subject), "other": list(other),
                   "ratio": float(stats.gmean(subject / other)), "low": float(numpy.exp(ends.low)),
                   "high": float(numpy.exp(ends.high)), "p": float(result.pvalue),
                   "sd": float(d.std(ddof=1))}


def holms():
    for n in [1, 2, 3, 5, 10, 45]:
        for name, p in [
            ("uniform", RNG.random(n)), ("small", RNG.random(n) / 50),
            ("tied", RNG.integers(1, 6, n) / 100), ("ones", numpy.ones(n)),
        ]:
            adjusted = multipletests(p, method="holm")[1]
            yield {"name": f"{name} {n}", "p": list(map(float, p)), "adjusted": list(map(float, adjusted))}


def ranks():
    """Quantiles of 1, 2, 3, ..., so that each value is its own rank."""
    for n, q in [(20, 0.5), (51, 0.5), (100, 0.9), (1000, 0.99), (10_000, 0.999), (200, 0.05)]:
        every = numpy.arange(1, n + 1)
        yield {"count": n, "q": q,
               "value": int(numpy.quantile(every, q, method="inverted_cdf"))}


def slopes():
    for name, base in [("flat", 0.0), ("rising", 8.0), ("falling", -6.0), ("noise", 0.0)]:
        for n in [2, 5, 9]:
            y = 100 + base * numpy.arange(n) + RNG.normal(0, 20 if name == "noise" else 2, n)
            line = stats.linregress(numpy.arange(n), y)
            yield {"name": f"{name} {n}", "values": list(y), "average": float(y.mean()),
                   "range": float(numpy.ptp(y) / y.mean()),
                   "slope": float(line.slope * (n - 1) / y.mean())}


def students():
    """The probability above t in Student's distribution, from 40 digits: t is its quantile as well."""
    for freedom in [0.5, 1, 1.5, 2, 3, 4, 4.75, 5, 7, 9, 12.3, 29, 49, 58.6, 99, 150, 199, 1000, 12345.6]:
        for t in [0.001, 0.2, 0.842, 1.5, 1.96, 2.776, 4.303, 12.706, 63.657, 1000.0]:
            with mpmath.workdps(40):
                nu, value = mpmath.mpf(freedom), mpmath.mpf(t)
                tail = mpmath.betainc(nu / 2, 0.5, 0, nu / (nu + value**2), regularized=True) / 2
            if tail > 1e-250:
                yield {"freedom": freedom, "t": t, "above": float(tail)}


write("median.json", medians())
write("effect.json", effects())
write("holm.json", holms())
write("ranks.json", ranks())
write("slope.json", slopes())
write("student.json", students())
write("versions.json", [{
    "mpmath": mpmath.__version__, "numpy": numpy.__version__, "scipy": scipy.__version__, "statsmodels": statsmodels.__version__,
}])
