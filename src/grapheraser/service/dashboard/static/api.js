// The API of the service, for pages with a session.

/** What went wrong, as the service says it (RFC 9457). */
export class Problem extends Error {
  /** @param {{title?: string, status?: number, detail?: string, hint?: string}} body */
  constructor(body) {
    super(body.detail ?? body.title ?? "the service did not answer.");
    this.status = body.status ?? 0;
    this.hint = body.hint ?? "";
  }
}

/** Leave for the sign-in page, which leads back here. */
export function signIn() {
  location.assign(`/dashboard/sign-in?next=${encodeURIComponent(location.pathname)}`);
}

/**
 * Call a route; a problem is thrown. A body is sent as JSON, a file as it is.
 * @param {string} path such as `/api/v1/model`
 * @param {{method?: string, body?: unknown, headers?: Record<string, string>, signal?: AbortSignal}} [options]
 * @returns {Promise<Response>}
 */
export async function call(path, { method = "GET", body, headers = {}, signal } = {}) {
  const token = document.querySelector('meta[name="csrf-token"]')?.getAttribute("content") ?? "";
  const sent = { Accept: "application/json", ...headers };
  if (method !== "GET") sent["X-CSRF-Token"] = token;
  if (body !== undefined) sent["Content-Type"] = "application/json";
  const content = body === undefined || body instanceof Blob ? body : JSON.stringify(body);
  /** @type {Response} */
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers: sent,
      body: content,
      credentials: "same-origin",
      signal,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem({ detail: "The service can't be reached.", hint: "Is it running?" });
  }
  if (answer.status === 401) signIn();
  if (!answer.ok) throw new Problem(await answer.json().catch(() => ({ status: answer.status })));
  return answer;
}

/**
 * Call a route that answers JSON.
 * @param {string} path
 * @param {Parameters<typeof call>[1]} [options]
 * @returns {Promise<any>}
 */
export async function json(path, options) {
  const answer = await call(path, options);
  return answer.status === 204 ? null : answer.json();
}
