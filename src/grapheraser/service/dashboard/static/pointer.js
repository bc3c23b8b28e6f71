// Mouse, fingers and keys on the drawing: move, zoom, point, select.

const STEP = 60;
const CLICK = 5; // pixels that a click may slip

/**
 * @typedef {object} Hands
 * @property {(node: number) => void} point at a node, or with -1 at none
 * @property {(node: number, more: boolean) => void} click a node; with -1, beside all of them
 * @property {(nodes: number[]) => void} select those in a rectangle
 * @property {() => boolean} drawsRectangle whether a drag draws one, without Shift
 * @property {(rectangle: number[] | null) => void} draw it, while it is drawn
 */

/**
 * @param {import("./canvas.js").Canvas} canvas
 * @param {Hands} hands
 */
export function listen(canvas, hands) {
  const { place } = canvas;
  /** @type {Map<number, {x: number, y: number}>} */
  const down = new Map();
  /** @type {number[] | null} */
  let rectangle = null;
  let begun = { x: 0, y: 0 };
  let slipped = false;

  /** @param {PointerEvent | WheelEvent} event */
  const spot = (event) => {
    const box = place.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  place.addEventListener("pointerdown", (event) => {
    place.setPointerCapture(event.pointerId);
    place.focus({ preventScroll: true });
    const at = spot(event);
    down.set(event.pointerId, at);
    if (down.size > 1) {
      rectangle = null;
      hands.draw(null);
      return;
    }
    begun = at;
    slipped = false;
    const draws = event.shiftKey || hands.drawsRectangle();
    rectangle = draws ? [at.x, at.y, at.x, at.y] : null;
  });

  place.addEventListener("pointermove", (event) => {
    const at = spot(event);
    const before = down.get(event.pointerId);
    if (before === undefined) return hands.point(canvas.nodeAt(at.x, at.y));
    if (Math.hypot(at.x - begun.x, at.y - begun.y) > CLICK) slipped = true;
    if (down.size === 2) pinch(event.pointerId, before, at);
    else if (rectangle !== null) {
      rectangle = [begun.x, begun.y, at.x, at.y];
      hands.draw(rectangle);
    } else if (slipped) canvas.panBy(at.x - before.x, at.y - before.y);
    down.set(event.pointerId, at);
  });

  /**
   * Two fingers: zoom by how far apart they are, and move with the one that moves.
   * @param {number} id @param {{x: number, y: number}} before @param {{x: number, y: number}} at
   */
  function pinch(id, before, at) {
    const other = [...down].find(([key]) => key !== id)?.[1];
    if (other === undefined) return;
    slipped = true;
    const apart = Math.hypot(before.x - other.x, before.y - other.y);
    const now = Math.hypot(at.x - other.x, at.y - other.y);
    canvas.zoomBy(now / Math.max(1, apart), other.x, other.y);
  }

  /** @param {PointerEvent} event */
  const up = (event) => {
    if (!down.delete(event.pointerId)) return;
    const drawn = rectangle;
    rectangle = null;
    hands.draw(null);
    if (drawn !== null && slipped) {
      const [x0, y0, x1, y1] = drawn;
      hands.select(canvas.nodesIn(x0, y0, x1, y1));
    } else if (!slipped && event.type === "pointerup") {
      const reach = event.pointerType === "touch" ? 18 : 8;
      hands.click(canvas.nodeAt(begun.x, begun.y, reach), event.shiftKey || event.ctrlKey);
    }
  };
  place.addEventListener("pointerup", up);
  place.addEventListener("pointercancel", up);
  place.addEventListener("pointerleave", () => down.size || hands.point(-1));
  place.addEventListener("wheel", (event) => {
    event.preventDefault();
    const at = spot(event);
    const notches = event.deltaMode === 0 ? event.deltaY / 100 : event.deltaY / 3;
    canvas.zoomBy(Math.exp(-0.25 * Math.max(-4, Math.min(4, notches))), at.x, at.y);
  }, { passive: false });
  place.addEventListener("dblclick", (event) => {
    const at = spot(/** @type {any} */ (event));
    canvas.zoomBy(1.8, at.x, at.y);
  });

  place.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = {
      ArrowLeft: () => canvas.panBy(STEP, 0),
      ArrowRight: () => canvas.panBy(-STEP, 0),
      ArrowUp: () => canvas.panBy(0, STEP),
      ArrowDown: () => canvas.panBy(0, -STEP),
      "+": () => canvas.zoomBy(1.25),
      "=": () => canvas.zoomBy(1.25),
      "-": () => canvas.zoomBy(0.8),
      0: () => canvas.fit(),
      Escape: () => hands.click(-1, false),
    };
    const act = keys[/** @type {keyof typeof keys} */ (event.key)];
    if (act === undefined) return;
    event.preventDefault();
    act();
  });
}
