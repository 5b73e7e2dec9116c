//! One panel for each workload: a bar for each subject from zero, a whisker over the interval,
//! and a small dot for each repetition, so that what was measured is seen and not only its
//! middle. Each panel has a scale of its own.

use crate::analysis::{Group, Row};
use crate::report::svg::{Anchor, Svg, round_up, series, shorten};
use crate::report::units;
use crate::tool::Metric;

const WIDTH: f64 = 420.0;
const LEFT: f64 = 104.0;
const RIGHT: f64 = 318.0;
const TOP: f64 = 30.0;
const ROW: f64 = 32.0;
const BAR: f64 = 18.0;

/// One panel.
pub(in crate::report) fn draw_throughput(group: &Group) -> String {
    let bottom = TOP + group.rows.len() as f64 * ROW;
    let title = format!("Throughput: {}", group.workload);
    let mut svg = Svg::new(
        WIDTH,
        bottom + 24.0,
        &title,
        "A bar for each subject, a line over its interval, a dot for each repetition. The numbers \
         are in the table below.",
    );
    svg.text("label", (0.0, 14.0), Anchor::Start, &shorten(&group.workload.label(), 60));
    let largest =
        group.rows.iter().flat_map(|row| row.throughputs.iter().copied()).fold(0.0, f64::max);
    // Small random requests are counted, everything else is weighed.
    let (unit_bytes, unit) = match group.counts_requests() {
        true => (group.workload.block_size.0 as f64, "/s"),
        false => (f64::from(1 << 20), "MiB/s"),
    };
    let end_units = round_up(largest / unit_bytes);
    let end = end_units * unit_bytes;
    let x = |value: f64| LEFT + value / end * (RIGHT - LEFT);
    for part in [0.0, 0.5, 1.0] {
        let class = if part == 0.0 { "axis" } else { "grid" };
        svg.line(class, (x(end * part), TOP - 4.0), (x(end * part), bottom));
        let number = shortest(end_units * part);
        let text = if part == 1.0 { format!("{number} {unit}") } else { number };
        svg.text("tick", (x(end * part), bottom + 16.0), Anchor::Middle, &text);
    }
    for (index, row) in group.rows.iter().enumerate() {
        draw_row(&mut svg, group, row, index, &x);
    }
    svg.finish()
}

fn draw_row(svg: &mut Svg, group: &Group, row: &Row, index: usize, x: &dyn Fn(f64) -> f64) {
    let middle = TOP + index as f64 * ROW + ROW / 2.0;
    svg.text("name", (LEFT - 8.0, middle + 4.0), Anchor::End, &shorten(&row.subject, 13));
    let Some(throughput) = row.get(Metric::Throughput) else {
        svg.text("tick", (LEFT + 8.0, middle + 4.0), Anchor::Start, "not measured");
        return;
    };
    let class = series(index);
    let bar = format!("{class} bar");
    svg.rect(&bar, (LEFT, middle - BAR / 2.0), x(throughput.median) - LEFT, BAR);
    svg.line("error", (x(throughput.low), middle), (x(throughput.high), middle));
    for value in &row.throughputs {
        let tip = format!("{}: {} MiB/s", row.subject, units::mib_per_s(*value));
        svg.dot("repetition", (x(*value), middle), 2.2, &tip);
    }
    let number = if group.counts_requests() {
        row.get(Metric::Iops).map_or_else(String::new, |e| format!("{} /s", units::count(e.median)))
    } else {
        format!("{} MiB/s", units::mib_per_s(throughput.median))
    };
    svg.text("value", (RIGHT + 14.0, middle + 4.0), Anchor::Start, &number);
}

/// A tick's number without needless zeros: 0, 250, 2.5.
fn shortest(value: f64) -> String {
    if value >= 1e6 {
        return format!("{}M", shortest(value / 1e6));
    }
    if value >= 10_000.0 {
        return format!("{}k", shortest(value / 1000.0));
    }
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
