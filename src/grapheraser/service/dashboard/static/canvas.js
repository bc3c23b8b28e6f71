// Points and edges in the plane, drawn by WebGL. One canvas, opaque, with nothing of its size above
// it: where the processor draws, the layers of a page cost more than the points.

const POINTS = `#version 300 es
in vec2 place; in vec4 colour;
uniform vec2 centre, zoom; uniform float size;
out vec4 shade;
void main() {
  gl_Position = vec4((place - centre) * zoom, 0.0, 1.0);
  gl_PointSize = size;
  shade = colour;
}`;
const DISC = `#version 300 es
precision highp float;
in vec4 shade; uniform float size, hollow; out vec4 seen;
void main() {
  float far = length(gl_PointCoord - 0.5) * size;
  float cover = clamp(size * 0.5 - far, 0.0, 1.0) * clamp(far - hollow + 0.5, 0.0, 1.0);
  seen = vec4(shade.rgb * shade.a, shade.a) * cover;
}`;
const LINES = `#version 300 es
in vec2 place; uniform vec2 centre, zoom;
void main() { gl_Position = vec4((place - centre) * zoom, 0.0, 1.0); }`;
const FLAT = `#version 300 es
precision highp float;
uniform vec4 shade; out vec4 seen;
void main() { seen = shade; }`;

// Frames with edges that take longer, in milliseconds, leave the edges out while the view moves; for
// how long, until it is tried again.
const SLOW = 28;
const FAST = 8;
const RETRY = 15_000;
const REST = 180;
const CLOSEST = 400;

/**
 * What is drawn above all nodes, in this order.
 * @typedef {object} Mark
 * @property {number[]} rows of nodes; of lines: both ends, one line after the other
 * @property {number[]} colour red, green, blue and opacity, from 0 to 1
 * @property {"disc" | "ring" | "line"} kind
 * @property {number} [wider] than a node, in pixels; of a line: its width
 */

/** The view onto a drawing, and what draws it. */
export class Canvas {
  /**
   * @param {HTMLCanvasElement} place
   * @param {(canvas: Canvas) => void} after each frame
   */
  constructor(place, after) {
    this.place = place;
    this.after = after;
    /** @type {[number, number]} */
    this.centre = [0, 0];
    this.scale = 1;
    this.count = 0;
    this.places = new Float32Array();
    this.showsEdges = true;
    this.edgeColour = [0, 0, 0, 0.1];
    this.paper = [1, 1, 1];
    /** @type {Mark[]} */
    this.marks = [];
    this.numLines = 0;
    this.waiting = false;
    /** @type {number | undefined} */
    this.rest = undefined;
    this.moves = false; // whether the view has moved since the last frame
    this.last = { at: -1e9, edges: false };
    this.pace = FAST; // what a frame with edges takes
    this.spared = -1e9; // until when edges are left out while the view moves
    const options = { antialias: false, alpha: false, depth: false, desynchronized: true };
    const gl = /** @type {WebGL2RenderingContext | null} */ (place.getContext("webgl2", options));
    if (gl === null) throw new Error("WebGL");
    this.gl = gl;
    this.points = program(gl, POINTS, DISC, ["centre", "zoom", "size", "hollow"]);
    this.lines = program(gl, LINES, FLAT, ["centre", "zoom", "shade"]);
    const kinds = ["places", "colours", "edges", "marked", "tied"];
    this.buffers = Object.fromEntries(kinds.map((kind) => [kind, gl.createBuffer()]));
    new ResizeObserver(() => this.resize()).observe(place);
    place.addEventListener("webglcontextlost", (event) => event.preventDefault());
    place.addEventListener("webglcontextrestored", () => location.reload());
    this.resize();
  }

  /** @param {Float32Array} places x and y of every node @param {Uint32Array} edges */
  setNodes(places, edges) {
    const { gl } = this;
    this.places = places;
    this.count = places.length / 2;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers.places);
    gl.bufferData(gl.ARRAY_BUFFER, places, gl.DYNAMIC_DRAW);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.buffers.edges);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, edges, gl.STATIC_DRAW);
    this.numLines = edges.length;
    this.index = grid(places);
    this.redraw();
  }

  /** @param {Uint8Array} colours red, green, blue and opacity of every node */
  setColours(colours) {
    const { gl } = this;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers.colours);
    gl.bufferData(gl.ARRAY_BUFFER, colours, gl.DYNAMIC_DRAW);
    this.redraw();
  }

  resize() {
    const box = this.place.getBoundingClientRect();
    this.ratio = Math.min(2, devicePixelRatio || 1);
    this.width = Math.max(1, box.width);
    this.height = Math.max(1, box.height);
    this.place.width = Math.round(this.width * this.ratio);
    this.place.height = Math.round(this.height * this.ratio);
    this.redraw();
  }

  /** The scale at which all of it is seen. */
  get whole() {
    return (Math.min(this.width, this.height) / 2) * 0.95;
  }

  /** The radius of a point in pixels: points grow as they get room. */
  get radius() {
    const apart = this.scale * Math.sqrt(Math.PI / Math.max(1, this.count));
    return Math.min(8, Math.max(1.4, apart * 0.24));
  }

  fit() {
    const [left, top, right, bottom] = bounds(this.places);
    this.centre = [(left + right) / 2, (top + bottom) / 2];
    const room = [this.width / (right - left || 1), this.height / (bottom - top || 1)];
    this.scale = Math.min(...room, this.whole * CLOSEST) * 0.94;
    this.redraw();
  }

  /**
   * @param {number} factor
   * @param {number} [x] what stays where it is, in pixels
   * @param {number} [y]
   */
  zoomBy(factor, x = this.width / 2, y = this.height / 2) {
    const fixed = this.at(x, y);
    this.scale = Math.min(this.whole * CLOSEST, Math.max(this.whole * 0.3, this.scale * factor));
    this.centre = [
      fixed[0] - (x - this.width / 2) / this.scale,
      fixed[1] + (y - this.height / 2) / this.scale,
    ];
    this.moving();
  }

  /** @param {number} x @param {number} y in pixels */
  panBy(x, y) {
    this.centre = [this.centre[0] - x / this.scale, this.centre[1] + y / this.scale];
    this.moving();
  }

  /**
   * Bring a node to the middle, close enough to see what is around it.
   * @param {number} node
   */
  goTo(node) {
    this.centre = [this.places[2 * node], this.places[2 * node + 1]];
    const close = 60 * Math.sqrt(this.count / Math.PI) / 3;
    this.scale = Math.max(this.scale, Math.min(this.whole * 40, Math.max(this.whole * 1.6, close)));
    this.redraw();
  }

  /** @param {number} x @param {number} y in pixels @returns {[number, number]} in the plane */
  at(x, y) {
    return [
      this.centre[0] + (x - this.width / 2) / this.scale,
      this.centre[1] - (y - this.height / 2) / this.scale,
    ];
  }

  /** @param {number} node @returns {[number, number]} in pixels */
  pixel(node) {
    return [
      this.width / 2 + (this.places[2 * node] - this.centre[0]) * this.scale,
      this.height / 2 - (this.places[2 * node + 1] - this.centre[1]) * this.scale,
    ];
  }

  /**
   * The node at a pixel, -1 where there is none.
   * @param {number} x @param {number} y @param {number} [reach] in pixels
   */
  nodeAt(x, y, reach = 8) {
    const [px, py] = this.at(x, y);
    const far = Math.max(reach, this.radius + 3) / this.scale;
    let best = -1;
    let least = far * far;
    this.index?.near(px, py, far, (node) => {
      const away = (this.places[2 * node] - px) ** 2 + (this.places[2 * node + 1] - py) ** 2;
      if (away < least) [best, least] = [node, away];
    });
    return best;
  }

  /**
   * The nodes in a rectangle of pixels.
   * @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1
   */
  nodesIn(x0, y0, x1, y1) {
    const [left, top] = this.at(Math.min(x0, x1), Math.min(y0, y1));
    const [right, bottom] = this.at(Math.max(x0, x1), Math.max(y0, y1));
    const found = [];
    for (let node = 0; node < this.count; node++) {
      const x = this.places[2 * node];
      const y = this.places[2 * node + 1];
      if (x >= left && x <= right && y >= bottom && y <= top) found.push(node);
    }
    return found;
  }

  moving() {
    this.moves = true;
    clearTimeout(this.rest);
    this.redraw();
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame((now) => this.draw(now));
  }

  /** @param {number} now */
  draw(now) {
    const { gl, moves } = this;
    this.waiting = this.moves = false;
    gl.viewport(0, 0, this.place.width, this.place.height);
    gl.clearColor(this.paper[0], this.paper[1], this.paper[2], 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    const edges = this.showsEdges && this.numLines > 0 && !(moves && this.isSpared(now));
    if (edges) this.drawLines(this.buffers.edges, this.numLines, this.edgeColour);
    if (this.count) this.drawPoints();
    for (const mark of this.marks) this.drawMark(mark);
    this.after(this);
    this.place.dispatchEvent(new Event("drawn"));
    this.last = { at: now, edges };
    // Once the view rests, its edges are drawn again.
    if (moves && !edges) this.rest = setTimeout(() => this.redraw(), REST);
  }

  /** Whether edges are left out while the view moves: frames with them are slow. @param {number} now */
  isSpared(now) {
    const took = now - this.last.at;
    // Frames come in pairs where they are slow: a mean over some tells how slow.
    if (this.last.edges && took < 1000) this.pace += (took - this.pace) * 0.3;
    if (this.pace > SLOW) [this.spared, this.pace] = [now + RETRY, FAST];
    return now < this.spared;
  }

  /** @param {WebGLBuffer} buffer @param {number} count @param {number[]} colour @param {number} [aside] in pixels */
  drawLines(buffer, count, [r, g, b, a], aside = 0) {
    const { gl } = this;
    gl.useProgram(this.lines.program);
    this.aim(this.lines, aside);
    gl.uniform4f(this.lines.shade, r * a, g * a, b * a, a);
    this.attach(this.buffers.places, 0, 2, gl.FLOAT, false);
    gl.disableVertexAttribArray(1);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, buffer);
    gl.drawElements(gl.LINES, count, gl.UNSIGNED_INT, 0);
  }

  drawPoints() {
    const { gl } = this;
    gl.useProgram(this.points.program);
    this.aim(this.points);
    gl.uniform1f(this.points.size, 2 * this.radius * this.ratio + 1);
    gl.uniform1f(this.points.hollow, -1);
    this.attach(this.buffers.places, 0, 2, gl.FLOAT, false);
    this.attach(this.buffers.colours, 1, 4, gl.UNSIGNED_BYTE, true);
    gl.drawArrays(gl.POINTS, 0, this.count);
  }

  /** @param {Mark} mark */
  drawMark({ rows, colour, kind, wider = 0 }) {
    const { gl } = this;
    if (!rows.length) return;
    if (kind === "line") {
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.buffers.tied);
      gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, new Uint32Array(rows), gl.STREAM_DRAW);
      // A line has the width of a pixel; a wider one is several beside each other.
      for (let aside = 0; aside < Math.max(1, wider); aside += 0.7) {
        this.drawLines(this.buffers.tied, rows.length, colour, aside - (wider - 1) / 2);
      }
      return;
    }
    const places = new Float32Array(2 * rows.length);
    rows.forEach((row, i) => places.set(this.places.subarray(2 * row, 2 * row + 2), 2 * i));
    gl.useProgram(this.points.program);
    this.aim(this.points);
    const size = 2 * (this.radius + wider) * this.ratio + 1;
    gl.uniform1f(this.points.size, size);
    gl.uniform1f(this.points.hollow, kind === "ring" ? size / 2 - 2 * this.ratio : -1);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers.marked);
    gl.bufferData(gl.ARRAY_BUFFER, places, gl.STREAM_DRAW);
    this.attach(this.buffers.marked, 0, 2, gl.FLOAT, false);
    gl.disableVertexAttribArray(1);
    gl.vertexAttrib4f(1, colour[0], colour[1], colour[2], colour[3]);
    gl.drawArrays(gl.POINTS, 0, rows.length);
  }

  /** @param {any} used @param {number} [aside] in pixels, to the right and down */
  aim(used, aside = 0) {
    const off = aside / this.scale;
    this.gl.uniform2f(used.centre, this.centre[0] - off, this.centre[1] + off);
    this.gl.uniform2f(used.zoom, (2 * this.scale) / this.width, (2 * this.scale) / this.height);
  }

  /**
   * @param {WebGLBuffer | null} buffer @param {number} place @param {number} size
   * @param {number} kind @param {boolean} share
   */
  attach(buffer, place, size, kind, share) {
    const { gl } = this;
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.enableVertexAttribArray(place);
    gl.vertexAttribPointer(place, size, kind, share, 0, 0);
  }
}

/**
 * @param {WebGL2RenderingContext} gl @param {string} vertex @param {string} fragment
 * @param {string[]} uniforms
 * @returns {any} the program, and where its uniforms are
 */
function program(gl, vertex, fragment, uniforms) {
  const made = /** @type {WebGLProgram} */ (gl.createProgram());
  for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = /** @type {WebGLShader} */ (gl.createShader(/** @type {number} */ (kind)));
    gl.shaderSource(shader, /** @type {string} */ (source));
    gl.compileShader(shader);
    gl.attachShader(made, shader);
  }
  gl.bindAttribLocation(made, 0, "place");
  gl.bindAttribLocation(made, 1, "colour");
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error("WebGL");
  const found = uniforms.map((name) => [name, gl.getUniformLocation(made, name)]);
  return { program: made, ...Object.fromEntries(found) };
}

/** @param {Float32Array} places @returns {[number, number, number, number]} */
function bounds(places) {
  if (!places.length) return [-1, -1, 1, 1];
  let [left, bottom, right, top] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 0; i < places.length; i += 2) {
    left = Math.min(left, places[i]);
    right = Math.max(right, places[i]);
    bottom = Math.min(bottom, places[i + 1]);
    top = Math.max(top, places[i + 1]);
  }
  return [left, bottom, right, top];
}

/**
 * Nodes by the cell of a grid over the square around the unit disc.
 * @param {Float32Array} places
 */
function grid(places) {
  const count = places.length / 2;
  const width = Math.max(1, Math.ceil(Math.sqrt(count / 2)));
  /** @param {number} value */
  const cell = (value) => Math.min(width - 1, Math.max(0, Math.floor(((value + 1) / 2) * width)));
  const starts = new Uint32Array(width * width + 1);
  for (let i = 0; i < count; i++) starts[cell(places[2 * i + 1]) * width + cell(places[2 * i]) + 1]++;
  for (let i = 0; i < width * width; i++) starts[i + 1] += starts[i];
  const filled = starts.slice();
  const nodes = new Uint32Array(count);
  for (let i = 0; i < count; i++) {
    nodes[filled[cell(places[2 * i + 1]) * width + cell(places[2 * i])]++] = i;
  }
  return {
    /**
     * @param {number} x @param {number} y @param {number} far
     * @param {(node: number) => void} visit
     */
    near(x, y, far, visit) {
      for (let row = cell(y - far); row <= cell(y + far); row++) {
        const first = starts[row * width + cell(x - far)];
        const last = starts[row * width + cell(x + far) + 1];
        for (let i = first; i < last; i++) visit(nodes[i]);
      }
    },
  };
}
