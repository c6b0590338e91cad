"""How each provider words its errors: status and body as its real service sends them."""

from dataclasses import dataclass

Json = dict[str, object]

CLOUDFLARE_PAGE = (
    '<!DOCTYPE html>\n<html lang="en-US"><head><title>502: Bad gateway</title></head><body>'
    "<h1>Bad gateway <span>Error code 502</span></h1><p>The web server reported a bad gateway error.</p>"
    "<p>Cloudflare Ray ID: sandbox</p></body></html>"
)


@dataclass(frozen=True)
class Fault:
    status: int
    body: Json


def _openai(status: int, message: str, kind: str, code: str | None) -> Fault:
    return Fault(status, {"error": {"message": message, "type": kind, "param": None, "code": code}})


def _ark(status: int, code: str, message: str, kind: str) -> Fault:
    return Fault(status, {"error": {"code": code, "message": message, "param": "", "type": kind}})


def _dashscope(status: int, code: str, message: str, kind: str) -> Fault:
    body: Json = {
        "error": {"code": code, "param": None, "message": message, "type": kind},
        "request_id": "sandbox",
    }
    return Fault(status, body)


def _hunyuan(status: int, message: str, kind: str, code: str) -> Fault:
    return Fault(status, {"error": {"message": message, "type": kind, "code": code}, "id": "sandbox"})


@dataclass(frozen=True)
class Dialect:
    """A provider's words. `blank_lines`: what a queued call that is not streamed receives meanwhile."""

    model: str
    unauthorized: Fault
    limited: Fault
    crowded: Fault
    exhausted: Fault
    refused: Fault
    http_500: Fault
    http_503: Fault
    blank_lines: bool = False

    def invalid(self, message: str) -> Fault:
        return _openai(400, message, "invalid_request_error", "invalid_request_error")


_OPENAI = Dialect(
    model="sandbox-1",
    unauthorized=_openai(401, "Incorrect API key provided.", "invalid_request_error", "invalid_api_key"),
    limited=_openai(429, "Rate limit reached for requests", "requests", "rate_limit_exceeded"),
    crowded=_openai(429, "Too many concurrent requests", "requests", "rate_limit_exceeded"),
    exhausted=_openai(
        429,
        "You exceeded your current quota, please check your plan and billing details.",
        "insufficient_quota",
        "insufficient_quota",
    ),
    refused=_openai(
        400, "Your request was rejected by the safety system.", "invalid_request_error", "content_policy_violation"
    ),
    http_500=_openai(500, "The server had an error while processing your request", "server_error", None),
    http_503=_openai(503, "The server is overloaded", "service_unavailable_error", "server_is_overloaded"),
)

_DEEPSEEK = Dialect(
    model="deepseek-flash",
    unauthorized=_openai(401, "Authentication Fails (no such user)", "authentication_error", "invalid_request_error"),
    limited=_openai(429, "Rate limit reached", "unknown_error", "rate_limit_reached_error"),
    crowded=_openai(429, "Too many concurrent requests", "unknown_error", "rate_limit_reached_error"),
    exhausted=_openai(402, "Insufficient Balance", "unknown_error", "invalid_request_error"),
    refused=_openai(400, "Content Exists Risk", "invalid_request_error", "invalid_request_error"),
    http_500=_openai(500, "Internal Server Error", "server_error", "internal_server_error"),
    http_503=_openai(
        503,
        "Service is too busy. Please retry your request later.",
        "service_unavailable_error",
        "service_unavailable_error",
    ),
    blank_lines=True,
)

_DOUBAO = Dialect(
    model="doubao-seed-2-0-lite-260428",
    unauthorized=_ark(401, "AuthenticationError", "The API key in the request is missing or invalid.", "Unauthorized"),
    limited=_ark(
        429,
        "RateLimitExceeded.EndpointRPMExceeded",
        "The Requests Per Minute (RPM) limit of the associated endpoint was exceeded.",
        "TooManyRequests",
    ),
    crowded=_ark(
        429,
        "InflightBatchsizeExceeded",
        "The number of requests in flight exceeds the limit of this account.",
        "TooManyRequests",
    ),
    exhausted=_ark(
        403,
        "AccountOverdueError",
        "The request failed because your account has an overdue balance. Request ID: sandbox",
        "Forbidden",
    ),
    refused=_ark(
        400,
        "InputTextRiskDetection",
        "The request could not be processed because the input text includes sensitive content that "
        "violates ContentSecurityDetection.",
        "BadRequest",
    ),
    http_500=_ark(
        500, "InternalServiceError", "The service encountered an unexpected internal error.", "InternalServerError"
    ),
    http_503=_ark(
        503, "ServerOverloaded", "The service is currently unable to handle additional requests.", "TooManyRequests"
    ),
)

_QWEN = Dialect(
    model="qwen-plus",
    unauthorized=_dashscope(401, "invalid_api_key", "Incorrect API key provided.", "invalid_request_error"),
    limited=_dashscope(
        429, "limit_requests", "You exceeded your current requests list, please slow down.", "limit_requests"
    ),
    crowded=_dashscope(429, "limit_burst_rate", "Request rate increased too quickly.", "limit_burst_rate"),
    exhausted=_dashscope(
        400, "Arrearage", "Access denied, please make sure your account is in good standing.", "Arrearage"
    ),
    refused=_dashscope(
        400, "data_inspection_failed", "Input data may contain inappropriate content.", "data_inspection_failed"
    ),
    http_500=_dashscope(
        500, "internal_error", "An internal error has occured, please try again later.", "internal_error"
    ),
    http_503=_dashscope(503, "ServiceUnavailable", "The service is temporarily unavailable.", "service_unavailable"),
)

_PERPLEXITY = Dialect(
    model="sonar",
    unauthorized=_openai(401, "Invalid API key provided.", "invalid_api_key", "invalid_api_key"),
    limited=_openai(
        429, "Request rate limit exceeded, please try again later.", "rate_limit_exceeded", "rate_limit_exceeded"
    ),
    crowded=_openai(429, "Too many concurrent requests.", "rate_limit_exceeded", "rate_limit_exceeded"),
    exhausted=_openai(
        401,
        "You exceeded your current quota, please check your plan and billing details.",
        "insufficient_quota",
        "insufficient_quota",
    ),
    refused=_OPENAI.refused,
    http_500=_OPENAI.http_500,
    http_503=_OPENAI.http_503,
)

_HUNYUAN = Dialect(
    model="hunyuan-turbos-latest",
    unauthorized=_hunyuan(401, "Incorrect API key provided", "invalid_request_error", "invalid_api_key"),
    limited=_hunyuan(429, "您当前每秒请求次数超过了每秒频率上限，请稍后重试。", "runtime_error", "2003"),
    crowded=_hunyuan(429, "您当前的并发数超过了并发上限，请稍后重试。", "runtime_error", "2003"),
    exhausted=_hunyuan(403, "资源包余量已用尽，请购买资源包或开通后付费。", "runtime_error", "2005"),
    refused=_hunyuan(400, "输入内容含有敏感信息。", "invalid_request_error", "content_filter"),
    http_500=_hunyuan(500, "服务内部错误，请稍后重试。", "server_error", "2001"),
    http_503=_hunyuan(503, "服务繁忙，请稍后重试。", "server_error", "2002"),
)

_KNOWN = {
    "deepseek": _DEEPSEEK,
    "doubao": _DOUBAO,
    "qwen": _QWEN,
    "perplexity": _PERPLEXITY,
    "hunyuan": _HUNYUAN,
}


def dialect_of(name: str) -> Dialect:
    """A provider nobody knows speaks OpenAI's."""
    return _KNOWN.get(name, _OPENAI)
