"use strict";
const places = () => [...document.querySelectorAll(".chart")];
const colours = () => {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  const axis = (name) => ({
    [`${name}.gridcolor`]: of("--line"), [`${name}.linecolor`]: of("--line"),
    [`${name}.tickcolor`]: of("--line"),
  });
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", "font.color": of("--ink"),
    "hoverlabel.bgcolor": of("--head"), "hoverlabel.font.color": of("--ink"),
    ...axis("xaxis"), ...axis("yaxis"),
  };
};
const recolour = () => places().forEach((place) => Plotly.relayout(place, colours()));
const draw = () => Promise.all(places().map(async (place) => {
  const figure = JSON.parse(place.nextElementSibling.textContent);
  await Plotly.newPlot(place, figure.data, figure.layout, {responsive: true, displayModeBar: false});
  await Plotly.relayout(place, colours());
})).then(() => { document.documentElement.dataset.drawn = places().length; });
draw();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
matchMedia("print").addEventListener("change", recolour);
