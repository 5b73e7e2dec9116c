#!/usr/bin/env python3
"""Makes the vectors that the tests of the laboratory's statistics compare with.

    python3 -m venv venv && venv/bin/pip install numpy==2.4.6 scipy==1.17.1 statsmodels==0.15.0
    venv/bin/python make_vectors.py

writes median.json, spread.json, paired.json, independent.json, holm.json, ranks.json,
slope.json and versions.json beside itself. Needed only to make them again, not to test.

Samples: normal, skewed (log-normal), heavy-tailed (Cauchy), with ties (whole seconds), constant,
tiny. All from numpy's PCG64 with a fixed seed.
"""

import itertools
import json
import pathlib
from fractions import Fraction

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


def enumerated_interval(values):
    """2.5 % and 97.5 % quantiles of the medians of all n^n resamples, counted as multisets."""
    n = len(values)
    ordered = sorted(values)
    weights = {}
    for picks in itertools.combinations_with_replacement(range(n), n):
        ways, left = 1, n
        for _, group in itertools.groupby(picks):
            size = len(list(group))
            ways *= scipy.special.comb(left, size, exact=True)
            left -= size
        median = float(numpy.median([ordered[pick] for pick in picks]))
        weights[median] = weights.get(median, 0) + ways
    tail = Fraction(25, 1000) * n**n

    def reach(medians):
        total = 0
        for median in medians:
            total += weights[median]
            if total >= tail:
                return median
        raise AssertionError("the weights do not add up")

    return reach(sorted(weights)), reach(sorted(weights, reverse=True))


def medians():
    for name, values in samples():
        n = len(values)
        row = {"name": name, "values": list(values), "median": float(numpy.median(values))}
        if 6 <= n <= 9:
            row["exact"] = enumerated_interval(values)
        if n >= 6:
            # The quantiles that 200,000 resamples give at 2.5 % -+ 0.15 %, four of their standard
            # deviations: the exact one lies between.
            row["low_between"], row["high_between"] = [], []
            drawn = stats.bootstrap(
                (values,), numpy.median, n_resamples=200_000, batch=20_000, method="percentile",
                rng=numpy.random.Generator(numpy.random.PCG64(7)),
            ).bootstrap_distribution
            for part in (0.0235, 0.0265):
                row["low_between"].append(float(numpy.quantile(drawn, part, method="inverted_cdf")))
            for part in (0.9735, 0.9765):
                row["high_between"].append(float(numpy.quantile(drawn, part, method="inverted_cdf")))
        yield row


def spreads():
    for name, values in samples():
        n = len(values)
        median = numpy.median(values)
        mad = stats.median_abs_deviation(values)
        if mad > 0:
            scores = stats.norm.ppf(0.75) * (values - median) / mad
        else:
            mean_deviation = numpy.mean(numpy.abs(values - median))
            scores = numpy.zeros(n)
            if mean_deviation > 0:
                scores = numpy.sqrt(2 / numpy.pi) * (values - median) / mean_deviation
        outside = [index for index in range(n) if abs(scores[index]) > 3.5]
        yield {
            "name": name, "values": list(values), "mad": float(mad), "mean": float(values.mean()),
            "sd": float(values.std(ddof=1)) if n > 1 else None,
            "cv": float(stats.variation(values, ddof=1)) if n > 1 else None,
            "outliers": outside, "scores": [float(scores[index]) for index in outside],
        }


def paired():
    def shifted(n):
        yield f"normal {n}", RNG.normal(0.3, 1.0, n)
        yield f"clear {n}", RNG.normal(2.0, 1.0, n)
        yield f"skewed {n}", RNG.lognormal(0.0, 1.0, n) - 1.0
        yield f"tied {n}", RNG.integers(-3, 5, n).astype(float)
        yield f"constant {n}", numpy.full(n, 0.25)

    for n in [2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 30]:
        for name, d in shifted(n):
            row = {"name": name, "differences": list(d), "sign_flip": None, "exact": n <= 16}
            result = stats.permutation_test(
                (d,), numpy.sum, permutation_type="samples", vectorized=True,
                n_resamples=numpy.inf if n <= 16 else 400_000, batch=20_000,
                rng=numpy.random.Generator(numpy.random.PCG64(9)),
            )
            row["sign_flip"] = float(result.pvalue)
            # Exact without ties and zeros; with them scipy's own table does not hold, so all
            # signs of the mid-ranks are counted.
            moving = d[d != 0]
            ranks = stats.rankdata(numpy.abs(moving)) * numpy.sign(moving)
            if len(moving) and len(set(numpy.abs(moving))) == len(moving):
                row["wilcoxon"] = float(stats.wilcoxon(moving, method="exact").pvalue)
            elif 2 <= len(moving) <= 16:
                row["wilcoxon"] = float(stats.permutation_test(
                    (ranks,), numpy.sum, permutation_type="samples", vectorized=True,
                    n_resamples=numpy.inf, batch=20_000).pvalue)
            yield row


def independent():
    for n, m in [(1, 1), (2, 3), (3, 3), (4, 4), (5, 5), (6, 5), (7, 9), (10, 10), (20, 25), (40, 40)]:
        pairs = [
            ("normal", RNG.normal(100, 5, n), RNG.normal(104, 5, m)),
            ("clear", RNG.normal(100, 5, n), RNG.normal(140, 5, m)),
            ("skewed", RNG.lognormal(3, 1, n), RNG.lognormal(3.4, 1, m)),
            ("tied", RNG.integers(4, 8, n).astype(float), RNG.integers(5, 9, m).astype(float)),
            ("constant", numpy.full(n, 7.0), numpy.full(m, 7.0)),
        ]
        for name, a, b in pairs:
            both = numpy.concatenate([a, b])
            row = {"name": f"{name} {n}+{m}", "a": list(a), "b": list(b)}
            if len(set(both)) == n + m:
                row["p"] = float(stats.mannwhitneyu(a, b, method="exact").pvalue)
            elif n + m <= 20:
                # With ties: all choices of n of the mid-ranks.
                ranks = stats.rankdata(both)
                mark = ranks[:n].sum()
                sums = [sum(c) for c in itertools.combinations(ranks, n)]
                low = sum(s <= mark + 1e-9 for s in sums)
                high = sum(s >= mark - 1e-9 for s in sums)
                row["p"] = min(1.0, 2 * min(low, high) / len(sums))
            else:
                continue
            # The ratio of medians: quantiles of 200,000 resamples, as for one median.
            if n >= 6 and m >= 6 and name != "constant":
                drawn = stats.bootstrap(
                    (a, b), lambda x, y, axis: numpy.median(y, axis) / numpy.median(x, axis),
                    n_resamples=200_000, batch=20_000, method="percentile", vectorized=True,
                    rng=numpy.random.Generator(numpy.random.PCG64(7)),
                ).bootstrap_distribution
                cut = lambda part: float(numpy.quantile(drawn, part, method="inverted_cdf"))
                row["low_between"] = [cut(0.0235), cut(0.0265)]
                row["high_between"] = [cut(0.9735), cut(0.9765)]
            yield row


def holms():
    for n in [1, 2, 3, 5, 10, 45]:
        for name, p in [
            ("uniform", RNG.random(n)), ("small", RNG.random(n) / 50),
            ("tied", RNG.integers(1, 6, n) / 100), ("ones", numpy.ones(n)),
        ]:
            adjusted = multipletests(p, method="holm")[1]
            yield {"name": f"{name} {n}", "p": list(map(float, p)), "adjusted": list(map(float, adjusted))}


def ranks():
    """Ranks of the 95 % interval: P(B <= l-1) <= 2.5 %, and the mirror image."""
    for n, q in [(20, 0.5), (51, 0.5), (100, 0.9), (1000, 0.99), (10_000, 0.999), (200, 0.05)]:
        every = numpy.arange(1, n + 1)
        yield {"count": n, "q": q,
               "value": int(numpy.quantile(every, q, method="inverted_cdf")),
               "low": int(every[stats.binom.cdf(every - 1, n, q) <= 0.025].max()),
               "high": int(every[stats.binom.sf(every - 1, n, q) <= 0.025].min())}


def slopes():
    for name, base in [("flat", 0.0), ("rising", 8.0), ("falling", -6.0), ("noise", 0.0)]:
        for n in [2, 5, 9]:
            y = 100 + base * numpy.arange(n) + RNG.normal(0, 20 if name == "noise" else 2, n)
            line = stats.linregress(numpy.arange(n), y)
            yield {"name": f"{name} {n}", "values": list(y), "average": float(y.mean()),
                   "range": float(numpy.ptp(y) / y.mean()),
                   "slope": float(line.slope * (n - 1) / y.mean())}


write("median.json", medians())
write("spread.json", spreads())
write("paired.json", paired())
write("independent.json", independent())
write("holm.json", holms())
write("ranks.json", ranks())
write("slope.json", slopes())
write("versions.json", [{
    "numpy": numpy.__version__, "scipy": scipy.__version__, "statsmodels": statsmodels.__version__,
}])
