/** Errors, grouped by what a program can do about them. */

import type { Problem } from "./models.js";

/** Base class of all errors of this package. */
export class FetchwellError extends Error {
  override name = "FetchwellError";
}

/** The service stayed unreachable or busy for as long as the client retried. */
export class Unreachable extends FetchwellError {
  override name = "Unreachable";
}

/** The webhook was not signed with this secret, or too long ago. */
export class BadSignature extends FetchwellError {
  override name = "BadSignature";
}

/** The service rejected the request and says why (RFC 9457). */
export class ProblemError extends FetchwellError {
  override name = "ProblemError";
  /** The HTTP status. */
  readonly status: number;
  /** The problem as it was sent: `title`, `detail`, `url`, `correlation_id`, `errors`, … */
  readonly problem: Problem;

  constructor(status: number, problem: Problem) {
    super(words(status, problem));
    this.status = status;
    this.problem = problem;
  }

  /** Names the kind of problem, such as `invalid-field`; empty if something other than the service answered. */
  get kind(): string {
    return this.problem.type.split("#problem-")[1] ?? "";
  }
}

/** The results after the cursor are no longer kept. */
export class CursorGone extends ProblemError {
  override name = "CursorGone";

  /** The oldest cursor after which all results are still available. */
  get oldest(): string {
    return this.problem.oldest ?? "0";
  }
}

function words(status: number, problem: Problem): string {
  const fields = (problem.errors ?? []).map(
    (error) => `${error.pointer ?? error.parameter ?? error.header ?? ""} ${error.detail}`,
  );
  const detail = fields.length > 0 ? fields.join("; ") : problem.detail;
  return detail === "" ? `${status} ${problem.title}` : `${status} ${problem.title}: ${detail}`;
}

/** How much of a response that is not a problem the error message quotes. */
const MOST_SHOWN = 200;

/** Converts an error response to an error. */
export function problemOf(status: number, statusText: string, text: string): ProblemError {
  const problem = readProblem(status, statusText, text);
  return status === 410 ? new CursorGone(status, problem) : new ProblemError(status, problem);
}

/** The response may come from a proxy, in any format. */
function readProblem(status: number, statusText: string, text: string): Problem {
  const own = { type: "about:blank", title: statusText || "the service refused", status, detail: "" };
  try {
    const members: unknown = JSON.parse(text);
    if (typeof members === "object" && members !== null && !Array.isArray(members)) {
      return { ...own, ...members };
    }
  } catch {
    // It is not JSON.
  }
  return { ...own, detail: text.slice(0, MOST_SHOWN) };
}
