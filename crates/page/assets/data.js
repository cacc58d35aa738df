"use strict";
// The data of a page: `runs`, and the columns of each trace (crates/page/src/columns.rs).

const runs = JSON.parse(document.getElementById("runs").textContent);

// The bytes behind base64 and deflate.
async function unpacked(id) {
  const text = atob(document.getElementById(id).textContent);
  const bytes = Uint8Array.from(text, (c) => c.charCodeAt(0));
  const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(inflated).arrayBuffer());
}

// Reads columns one after the other: LEB128, zigzag, differences.
function columnReader(bytes) {
  let at = 0;
  return (count) => {
    const column = new Float64Array(count);
    let last = 0;
    for (let i = 0; i < count; i++) {
      let number = 0, scale = 1, byte;
      do {
        byte = bytes[at++];
        number += (byte & 127) * scale;
        scale *= 128;
      } while (byte > 127);
      last += number % 2 ? -(number + 1) / 2 : number / 2;
      column[i] = last;
    }
    return column;
  };
}

// How many elements of a sorted array are below `value`.
function countBelow(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

const MISS = 1, OVERRUN = 2, READY = 4;

// The columns of a trace's tasks, with what makes a picture of a million of them cheap: sums of
// execution until each interval; missed deadlines and releases that overran, sorted.
async function readTracks(number) {
  const read = columnReader(await unpacked("data-" + number));
  return runs[number].recorded.tasks.map((task) => {
    const track = { ...task };
    for (const field of ["from", "length", "background"]) track[field] = read(task.intervals);
    for (const field of
      ["number", "deadline", "started", "completed", "assigned", "received", "flags", "release"]) {
      track[field] = read(task.periods);
    }
    track.executed = new Float64Array(task.intervals + 1);
    track.length.forEach((ns, i) => { track.executed[i + 1] = track.executed[i] + ns; });
    const deadlines = track.release.map((release, i) => release + track.deadline[i]);
    track.missed = deadlines.filter((_, i) => track.flags[i] & MISS).sort();
    track.overran = track.release.filter((_, i) => track.flags[i] & OVERRUN);
    return track;
  });
}

// Execution of a task up to a time, both ns.
function executedUntil(track, time) {
  const i = countBelow(track.from, time) - 1;
  if (i < 0) return 0;
  return track.executed[i] + Math.min(time - track.from[i], track.length[i]);
}
