// A line chart of the last 15 minutes, by Chart.js. Screen readers get its text instead of the picture.
import {el} from "./dom.js";
import {kWindowMs} from "./series.js";

const kMinutes = kWindowMs / 60000;
const kLeastMinutes = 1;
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function minutesAgo(minutes) {
  if (minutes === 0) return "now";
  return minutes <= -1 ? `${minutes} min` : `${Math.round(minutes * 60)} s`;
}

function options(format, stacked) {
  const grid = {color: color("--grid"), borderColor: color("--grid")};
  const ticks = {color: color("--muted"), maxRotation: 0};
  return {
    animation: false,
    responsive: true,
    maintainAspectRatio: false,
    parsing: false,
    normalized: true,
    events: [],
    elements: {point: {radius: 0}, line: {borderWidth: 2}},
    plugins: {legend: {display: false}, tooltip: {enabled: false}},
    scales: {
      x: {
        type: "linear",
        min: -kLeastMinutes,
        max: 0,
        grid,
        ticks: {...ticks, maxTicksLimit: 6, callback: minutesAgo}
      },
      y: {beginAtZero: true, stacked, grid, ticks: {...ticks, maxTicksLimit: 5, callback: format}},
    },
  };
}

// `lines`: [{label, color (a variable of the style), value(sample)}]; format(value) makes the texts.
export class LineChart {
  constructor(title, lines, format, stacked = false) {
    Object.assign(this, {title, lines, format, stacked});
    this.canvas = el("canvas", {role: "img"});
    this.element = el("div", {class: "chart"}, this.canvas);
    this.legend = lines.length < 2 ?
        undefined :
        el("p", {class: "legend", "aria-hidden": "true"},
            ...lines.map(
                (line) => el("span", {}, el("i", {class: `swatch ${line.color.slice(2)}`}), line.label)));
  }

  update(samples) {
    const now = samples[samples.length - 1].at;
    if (!this.chart) this.draw();
    this.lines.forEach((line, i) => {
      this.chart.data.datasets[i].data =
          samples.map((s) => ({x: (s.at - now) / 60000, y: line.value(s) ?? NaN}));
    });
    const minutes = Math.ceil((now - samples[0].at) / 60000);
    this.chart.options.scales.x.min = -Math.min(kMinutes, Math.max(kLeastMinutes, minutes));
    this.chart.update("none");
    const texts = this.lines.map((line) => {
      const values = samples.map(line.value).filter((v) => v !== null);
      return `${line.label}: ${values.length ? `highest ${this.format(Math.max(...values))}` : "none"}`;
    });
    this.canvas.setAttribute("aria-label", `${this.title}, last ${kMinutes} minutes. ${texts.join(", ")}`);
  }

  draw() {
    const datasets = this.lines.map((line) => ({
      label: line.label,
      data: [],
      borderColor: color(line.color),
      fill: this.stacked ? "stack" : false,
      backgroundColor: `${color(line.color)}33`,
    }));
    this.chart = new Chart(this.canvas, {
      type: "line",
      data: {datasets},
      options: options(this.format, this.stacked),
    });
  }

  close() {
    this.chart?.destroy();
    this.chart = undefined;
  }
}
