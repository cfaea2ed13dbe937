"""compare_stats.py: is a difference between paired figures more than chance? Wilcoxon's signed-rank test and a bootstrap of the mean.

SPDX-License-Identifier: Apache-2.0
"""
import math
import random
import statistics

EXACT_UP_TO = 60        # pairs; beyond, the normal approximation


def signed_ranks(differences):
    """Ranks of the sizes of what is not 0, twice over so that ties stay whole numbers: (rank, is positive)."""
    kept = sorted((d for d in differences if d), key=abs)
    ranked, at = [], 0
    while at < len(kept):
        end = at
        while end < len(kept) and abs(kept[end]) == abs(kept[at]):
            end += 1
        ranked += [(at + 1 + end, d > 0) for d in kept[at:end]]
        at = end
    return ranked


def wilcoxon(differences):
    """Two-sided p of the hypothesis that differences are symmetric around 0; None without any."""
    ranked = signed_ranks(differences)
    if not ranked:
        return None
    total = sum(rank for rank, _ in ranked)
    positive = sum(rank for rank, sign in ranked if sign)
    least = min(positive, total - positive)
    if len(ranked) <= EXACT_UP_TO:
        ways = [1] + [0] * total        # ways[s]: choices of signs whose positive ranks sum to s
        for rank, _ in ranked:
            for s in range(total, rank - 1, -1):
                ways[s] += ways[s - rank]
        return min(1.0, 2 * sum(ways[:least + 1]) / 2 ** len(ranked))
    mean, spread = total / 2, math.sqrt(sum(rank * rank for rank, _ in ranked)) / 2
    return min(1.0, math.erfc((mean - least - 1) / spread / math.sqrt(2)))


def mean(values):
    return sum(values) / len(values)


def bootstrap(values, share=.95):
    """An interval that holds the mean, by resampling; the same every time."""
    draws = max(1000, min(10000, 2000000 // len(values)))
    chance = random.Random(1)
    means = sorted(mean(chance.choices(values, k=len(values))) for _ in range(draws))
    cut = int(draws * (1 - share) / 2)
    return means[cut], means[-1 - cut]


def compare(pairs):
    """pairs: (ours, theirs) in bytes. How much smaller ours are, as a fraction of theirs (negative: smaller)."""
    relative = [ours / theirs - 1 for ours, theirs in pairs]
    low, high = bootstrap(relative)
    return {"pairs": len(pairs), "smaller": sum(r < 0 for r in relative), "mean": mean(relative), "median": statistics.median(relative), "low": low, "high": high, "p": wilcoxon(relative),
            "total": sum(ours for ours, _ in pairs) / sum(theirs for _, theirs in pairs) - 1}
