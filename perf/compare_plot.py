"""compare_plot.py: size against decoding speed as an SVG file, with the front of what nothing beats in both.

SPDX-License-Identifier: Apache-2.0
"""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 460, 64, 196, 50, 52
OURS, THEIRS = "#c0392b", "#34495e"
SPAN = .025     # of ratios that are drawn to scale; what is larger stands in a row on top


def front(points):
    """Of (speed, ratio, ...): those that no other point beats in speed and size, the fastest first."""
    best, kept = math.inf, []
    for point in sorted(points, key=lambda p: (-p[0], p[1])):
        if point[1] < best:
            best = point[1]
            kept.append(point)
    return kept


def spread(wanted, gap):
    """Positions near the wanted ones (ascending), none closer to the next than gap."""
    placed = []
    for y in wanted:
        placed.append(max(y, placed[-1] + gap) if placed else y)
    over = placed[-1] - (HEIGHT - BOTTOM) if placed else 0
    for i in range(len(placed) - 1, -1, -1):
        if over <= 0:
            break
        limit = HEIGHT - BOTTOM if i == len(placed) - 1 else placed[i + 1] - gap
        placed[i] = min(placed[i], limit)
    return placed


def text(x, y, words, **style):
    attributes = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in style.items())
    return f'<text x="{x:.1f}" y="{y:.1f}"{attributes}>{escape(words)}</text>'


def plot(title, points):
    """points: (decoding as a fraction of memcpy, archive / original, name, io, ours). The SVG as text."""
    least = min(p[1] for p in points)
    shown = max(p[1] for p in points if p[1] <= least + SPAN)
    lowest, highest = least - .0015, shown + max(.0015, (shown - least) * .15)
    slow = 10 ** math.floor(math.log10(min(p[0] for p in points)))
    fast = max(1.0, max(p[0] for p in points)) * 1.15

    def x(speed):
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(speed / slow) / math.log(fast / slow)

    def y(ratio):
        return TOP + (HEIGHT - TOP - BOTTOM) * (highest - min(ratio, highest)) / (highest - lowest)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="sans-serif" font-size="12">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
           text(LEFT, 24, title, font_size=15, fill="#111")]
    for decade in range(round(math.log10(slow)), 1):
        for step in (1, 2, 5):
            at = step * 10 ** decade
            if slow <= at <= fast:
                out.append(f'<path d="M{x(at):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#e4e4e4"/>')
                out.append(text(x(at), HEIGHT - BOTTOM + 18, f"{at:g}", text_anchor="middle", fill="#555"))
    step = next(s for s in (.001, .002, .005, .01) if (highest - lowest) / s <= 8)
    for i in range(math.ceil(lowest / step), math.floor(highest / step) + 1):
        out.append(f'<path d="M{LEFT} {y(i * step):.1f}H{WIDTH - RIGHT}" stroke="#e4e4e4"/>')
        out.append(text(LEFT - 8, y(i * step) + 4, f"{i * step:.3f}", text_anchor="end", fill="#555"))
    out.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "decoding, one core, as a fraction of memcpy (right is faster)", text_anchor="middle", fill="#333"))
    out.append(text(LEFT, TOP - 8, f"archive / original (down is smaller; on this line: {highest:.3f} and more)", fill="#333"))
    steps = front(points)
    path = f"M{x(steps[0][0]):.1f} {TOP}V{y(steps[0][1]):.1f}" + "".join(f"H{x(p[0]):.1f}V{y(p[1]):.1f}" for p in steps[1:]) + f"H{LEFT}"
    out.append(f'<path d="{path}" fill="none" stroke="#27ae60" stroke-width="1.5" stroke-dasharray="5 3"/>')
    ordered = sorted(points, key=lambda p: (y(p[1]), -p[1]))
    for (speed, ratio, name, io, ours), label in zip(ordered, spread([y(p[1]) for p in ordered], 14)):
        color = OURS if ours else THEIRS
        out.append(f'<path d="M{x(speed):.1f} {y(ratio):.1f}L{WIDTH - RIGHT + 6} {label:.1f}" stroke="{color}" stroke-opacity=".18"/>')
        out.append(f'<circle cx="{x(speed):.1f}" cy="{y(ratio):.1f}" r="4.5" stroke="{color}" stroke-width="1.6" fill="{"#fff" if io == "file" else color}"/>')
        out.append(text(WIDTH - RIGHT + 9, label + 4, f"{name} {ratio:.4f}".replace(" 0.", " ."), fill=color))
    return "\n".join(out + ["</svg>", ""])
