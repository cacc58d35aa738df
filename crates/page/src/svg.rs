//! The pictures of a page as SVG, each in a file of its own: for papers and slides.

use std::error::Error;

use plotters::coord::Shift;
use plotters::prelude::*;
use punctual_diagnostic::Diagnostic;
use punctual_report::units::time;

use crate::histogram::Histogram;
use crate::recorded::{Recorded, Track};
use crate::spreads::{Spread, Spreads};
use crate::Page;

/// Okabe and Ito's palette, as in `assets/style.js`.
const PALETTE: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(240, 228, 66),
];
/// For misses only.
const VERMILION: RGBColor = RGBColor(213, 94, 0);
const WIDTH: u32 = 1200;
/// Beyond so many of anything a picture shows shares of each of so many parts.
const PARTS: u64 = 1000;
const ROW: u32 = 48;

type Drawing<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn Error>>;

/// One picture.
#[derive(Debug)]
pub struct Picture {
    /// Its file name, without the extension.
    pub name: String,
    /// The document.
    pub svg: String,
}

impl Page {
    /// All pictures: of each trace its schedule, and for each task its times and budgets; then
    /// those that compare.
    ///
    /// # Errors
    /// One cannot be drawn.
    pub fn pictures(&self) -> Result<Vec<Picture>, Diagnostic> {
        let mut pictures = Vec::new();
        for (number, run) in self.runs.iter().enumerate() {
            let Some(recorded) =
                run.recorded.as_ref().filter(|recorded| !recorded.tasks.is_empty())
            else {
                continue;
            };
            let number = number + 1;
            let height = 60 + ROW * recorded.tasks.len() as u32;
            pictures.push(picture(format!("{number}-schedule"), height, |root| {
                schedule(root, recorded)
            })?);
            for (place, track) in recorded.tasks.iter().enumerate() {
                let times = [("latency", track.latencies()), ("response", track.responses())];
                let times: Vec<_> = times
                    .into_iter()
                    .filter_map(|(name, all)| Some((name, Histogram::of(all)?)))
                    .collect();
                let name = |what| format!("{number}-{what}-{}", place + 1);
                if !times.is_empty() {
                    pictures
                        .push(picture(name("times"), 400, |root| histograms(root, track, &times))?);
                }
                if !track.periods.is_empty() {
                    pictures.push(picture(name("budget"), 300, |root| budget(root, track))?);
                }
            }
        }
        for spreads in self.spreads() {
            pictures.push(picture(spreads.id.clone(), 500, |root| compared(root, &spreads))?);
        }
        Ok(pictures)
    }
}

fn picture(
    name: String,
    height: u32,
    draw: impl FnOnce(&Drawing<'_>) -> Drawn,
) -> Result<Picture, Diagnostic> {
    let mut svg = String::new();
    let drawn = {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        root.fill(&WHITE)
            .map_err(Into::into)
            .and_then(|()| draw(&root))
            .and_then(|()| Ok(root.present()?))
    };
    drawn.map_err(|e| {
        let help = "report it with the file that it is made of";
        Diagnostic::machine(format!("the picture {name} cannot be drawn: {e}"), help)
    })?;
    Ok(Picture { name, svg })
}

fn color_of(place: usize) -> RGBColor {
    PALETTE[place % PALETTE.len()]
}

/// A row for each task, in the order of the set, from the top.
fn schedule(root: &Drawing<'_>, recorded: &Recorded) -> Drawn {
    let rows = recorded.tasks.len();
    let name = |y: &f64| {
        let row = rows as f64 - y - 0.5;
        let is_centre = row >= 0.0 && row.fract().abs() < 0.01;
        let track = is_centre.then(|| recorded.tasks.get(row as usize)).flatten();
        track.map_or_else(String::new, |track| track.name.chars().take(18).collect())
    };
    let mut chart = ChartBuilder::on(root)
        .margin(12)
        .x_label_area_size(30)
        .y_label_area_size(150)
        .build_cartesian_2d(0.0..recorded.length as f64, 0.0..rows as f64)?;
    let show = |x: &f64| time(*x as u64);
    chart
        .configure_mesh()
        .disable_y_mesh()
        .light_line_style(TRANSPARENT)
        .y_labels(2 * rows + 1)
        .x_label_formatter(&show)
        .y_label_formatter(&name)
        .draw()?;
    for (place, track) in recorded.tasks.iter().enumerate() {
        let bottom = (rows - 1 - place) as f64 + 0.15;
        let bars = bars(recorded, track);
        chart.draw_series(bars.into_iter().map(|(from, to, share)| {
            Rectangle::new([(from, bottom), (to, bottom + 0.6 * share)], color_of(place).filled())
        }))?;
        let part = (recorded.length / PARTS).max(1);
        let mut missed: Vec<u64> =
            track.periods.iter().filter(|p| p.miss).map(|p| p.deadline).collect();
        missed.sort_unstable();
        missed.dedup_by_key(|deadline| deadline.saturating_sub(recorded.origin) / part);
        let missed =
            missed.into_iter().map(|deadline| deadline.saturating_sub(recorded.origin) as f64);
        chart.draw_series(
            missed.map(|x| Cross::new((x, bottom + 0.72), 4, VERMILION.stroke_width(2))),
        )?;
    }
    Ok(())
}

/// When a task executed, from the origin, ns: bars with the share of their time that it executed.
fn bars(recorded: &Recorded, track: &Track) -> Vec<(f64, f64, f64)> {
    let since = |ns: u64| ns.saturating_sub(recorded.origin);
    let part = recorded.length.div_ceil(PARTS);
    if track.intervals.iter().all(|interval| interval.to - interval.from >= part) {
        return track
            .intervals
            .iter()
            .map(|i| (since(i.from) as f64, since(i.to) as f64, 1.0))
            .collect();
    }
    let mut executed = vec![0; PARTS as usize];
    for interval in &track.intervals {
        let (mut from, to) = (since(interval.from), since(interval.to));
        while from < to {
            let at = (from / part).min(PARTS - 1);
            let end = if at == PARTS - 1 { to } else { to.min((at + 1) * part) };
            executed[at as usize] += end - from;
            from = end;
        }
    }
    let parts = executed.into_iter().enumerate().filter(|&(_, ns)| ns > 0);
    let bar = |(at, ns): (usize, u64)| {
        let from = at as u64 * part;
        (from as f64, (from + part) as f64, (ns as f64 / part as f64).min(1.0))
    };
    parts.map(bar).collect()
}

fn histograms(root: &Drawing<'_>, track: &Track, all: &[(&str, Histogram)]) -> Drawn {
    let edges = || all.iter().flat_map(|(_, h)| h.edges.iter().copied());
    let (least, most) = (edges().fold(f64::MAX, f64::min), edges().fold(1.0, f64::max));
    let highest = all.iter().flat_map(|(_, h)| h.counts.iter().copied()).max().unwrap_or(1);
    let mut chart = ChartBuilder::on(root)
        .margin(12)
        .caption(&track.name, ("sans-serif", 18))
        .x_label_area_size(30)
        .y_label_area_size(70)
        .build_cartesian_2d(
            (least / 1.2..most * 1.2).log_scale(),
            (0.7..highest as f64 * 2.0).log_scale(),
        )?;
    let show = |x: &f64| time(*x as u64);
    let periods = |y: &f64| format!("{y:.0}");
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_label_formatter(&show)
        .y_label_formatter(&periods)
        .y_desc("periods")
        .draw()?;
    for (place, (name, histogram)) in all.iter().enumerate() {
        let color = color_of(place);
        let bins =
            histogram.edges.windows(2).zip(&histogram.counts).filter(|(_, &count)| count > 0);
        let bar = |(ends, &count): (&[f64], &u64)| {
            Rectangle::new([(ends[0], 0.7), (ends[1], count as f64)], color.mix(0.4).filled())
        };
        let Histogram { median, p99, p999, worst, .. } = *histogram;
        let label = format!(
            "{name}: median {}, p99 {}, p99.9 {}, worst {}",
            time(median),
            time(p99),
            time(p999),
            time(worst)
        );
        chart
            .draw_series(bins.map(bar))?
            .label(label)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], color.filled()));
        let line =
            |ns: u64| vec![(ns.max(1) as f64, 0.7), (ns.max(1) as f64, highest as f64 * 2.0)];
        chart.draw_series(
            [median, p99, worst].map(|ns| PathElement::new(line(ns), color.stroke_width(1))),
        )?;
    }
    chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK).draw()?;
    Ok(())
}

/// Received per assigned of each period, percent: Fig. 6 of the RTAI paper.
fn budget(root: &Drawing<'_>, track: &Track) -> Drawn {
    let rate = |received: u64, assigned: u64| received as f64 * 100.0 / assigned.max(1) as f64;
    let points: Vec<(f64, f64)> =
        track.periods.iter().map(|p| (p.number as f64, rate(p.received, p.assigned))).collect();
    let first = points.first().map_or(0.0, |point| point.0);
    let last = points.last().map_or(1.0, |point| point.0).max(first + 1.0);
    let most = points.iter().fold(105.0, |most, point| point.1.max(most));
    let mut chart = ChartBuilder::on(root)
        .margin(12)
        .caption(&track.name, ("sans-serif", 18))
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(first..last, 0.0..most * 1.05)?;
    let whole = |x: &f64| format!("{x:.0}");
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_label_formatter(&whole)
        .x_desc("period")
        .y_desc("received, %")
        .draw()?;
    chart.draw_series(LineSeries::new(thinned(&points), color_of(0).stroke_width(1)))?;
    Ok(())
}

/// The lowest and the highest of each part, where there are too many to draw.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let part = points.len().div_ceil(PARTS as usize).max(1);
    if part <= 2 {
        return points.to_vec();
    }
    let ends = |part: &[(f64, f64)]| {
        let by_rate = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let mut ends: Vec<_> =
            part.iter().min_by(by_rate).into_iter().chain(part.iter().max_by(by_rate)).collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        ends.into_iter().copied().collect::<Vec<_>>()
    };
    points.chunks(part).flat_map(ends).collect()
}

/// A line and a mark for each name and series, from left to right in the order of the series.
fn compared(root: &Drawing<'_>, spreads: &Spreads) -> Drawn {
    let all = || spreads.series.iter().flat_map(|series| &series.spreads).flatten();
    let least = all().map(|s| s.from).min().unwrap_or(1).max(1) as f64;
    let most = all().map(|s| s.mark).max().unwrap_or(10).max(10) as f64;
    let names = spreads.names.len();
    let name = |x: &f64| {
        let is_centre = *x >= 0.0 && x.fract().abs() < 0.01;
        let name = is_centre.then(|| spreads.names.get(*x as usize)).flatten();
        name.map_or_else(String::new, |name| name.chars().take(14).collect())
    };
    let mut chart = ChartBuilder::on(root)
        .margin(12)
        .caption(&spreads.caption, ("sans-serif", 18))
        .x_label_area_size(30)
        .y_label_area_size(70)
        .build_cartesian_2d(-0.5..names as f64 - 0.5, (least / 1.5..most * 4.0).log_scale())?;
    let show = |y: &f64| time(*y as u64);
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .x_labels(2 * names + 1)
        .x_label_formatter(&name)
        .y_label_formatter(&show)
        .draw()?;
    let count = spreads.series.len() as f64;
    for (place, series) in spreads.series.iter().enumerate() {
        let color = color_of(place);
        let offset = (place as f64 - (count - 1.0) / 2.0) * (0.8 / count).min(0.15);
        let shown = series.spreads.iter().enumerate();
        let shown = shown.filter_map(|(at, spread)| Some((at as f64 + offset, (*spread)?)));
        let line = |(x, Spread { from, to, .. }): (f64, Spread)| {
            let ends = vec![(x, from.max(1) as f64), (x, to.max(1) as f64)];
            PathElement::new(ends, color.stroke_width(3))
        };
        chart
            .draw_series(shown.clone().map(line))?
            .label(&series.title)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], color.filled()));
        let mark =
            |(x, Spread { mark, .. })| Circle::new((x, mark.max(1) as f64), 4, color.filled());
        chart.draw_series(shown.map(mark))?;
    }
    chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK).draw()?;
    Ok(())
}
