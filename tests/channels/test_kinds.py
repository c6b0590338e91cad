"""Replies that no line of the fault file shows, of the kinds that it does show."""
# ruff: noqa: E501 - one reply, one line

import gzip
import json
from datetime import UTC, datetime

import pytest

from citeloop.channels.reply import HttpReply
from citeloop.channels.services import judgement

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
SSE = {"content-type": "text/event-stream"}
HTML = {"content-type": "text/html"}


def error(message: str, code: object = None, kind: str | None = None) -> bytes:
    return json.dumps({"error": {"message": message, "code": code, "type": kind}}, ensure_ascii=False).encode()


def plain(**fields: object) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode()


def sse(*payloads: object) -> bytes:
    return b"".join(f"data: {json.dumps(one)}\n\n".encode() for one in payloads)


def chat(text: str | None, finish: str | None = "stop", **message: object) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
    return plain(id="x", model="m", choices=[choice])


PAUSE, BACKOFF, FAIL, REFUSE = "pause_channel", "retry_backoff", "fail_permanent", "refuse_content"
ACCEPT = "accept_with_note"
LOOK, SHORTER, REFRESH = "reconcile_then_retry", "retry_with_change:shorten_input", "refresh_token_retry_once"
NEXT_DAY, IN_TEXT = "reschedule:next_day", "reschedule:reset_time_in_message"

MONEY = [
    ("openai", 429, error("You exceeded your current quota, please check your plan and billing details.", "billing")),
    ("openai", 429, error("You have reached your quota for this model.")),
    ("openai", 403, error("Budget limit exceeded for this key")),
    ("anthropic", 429, error("This request would exceed your account's monthly spend limit. Please try again later.")),
    ("anthropic", 400, error("You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.")),
    ("anthropic", 402, error("", None, "billing_error")),
    ("volcengine_ark", 403, error("The account is overdue", "OperationDenied.ServiceOverdue")),
    ("volcengine_ark", 429, error("The set limit of the model was reached", "SetLimitExceeded")),
    ("moonshot", 403, error("You exceeded your current token quota: 0", None, "exceeded_current_quota_error")),
    ("zhipu", 429, error("账户余额不足，请充值", "1113")),
    ("zhipu", 429, error("您的 GLM Coding Plan 套餐已到期", "1309")),
    ("dashscope", 403, error("The free tier of the model has been exhausted. If you wish to continue, disable it.", "AllocationQuota.FreeTierOnly")),
    ("dashscope_native", 400, plain(code="PostpaidBillOverdue", message="The bill is overdue.")),
    ("hunyuan_native", 200, plain(Response={"Error": {"Code": "FailedOperation.ResourcePackExhausted", "Message": "资源包余量已用尽"}})),
    ("openai_compatible", 403, error("预扣费额度失败, 用户剩余额度: ¥0.01", "insufficient_user_quota")),
    ("openai_compatible", 401, error("该令牌额度已用尽")),
    ("openrouter_like", 402, error("This request requires more credits, or fewer max_tokens.", 402)),
    ("openrouter_like", 429, error('Provider returned error: {"error":{"message":"Insufficient Balance"}}', 429)),
    ("baidu_ai_search", 200, plain(code="BILLING_INSUFFICIENT_BALANCE", message="balance")),
    ("generic_http", 200, plain(base_resp={"status_code": 1008, "status_msg": "insufficient balance"})),
    ("generic_http", 200, plain(success=False, message="账户已欠费")),
    ("deepseek", 200, sse({"error": {"message": "Insufficient Balance"}})),
    ("generic_http", 429, plain(error="insufficient_quota")),
    ("generic_http", 400, plain(Code="Arrearage", Message="The account is not in order", RequestId="r")),
]  # fmt: skip
RESET = [
    ("zhipu", 429, error("已达到每周使用上限，您的限额将在 2026-12-04 08:00:00 重置", "1310"), IN_TEXT),
    ("zhipu", 429, error("Usage limit reached for 5 hour. Your limit will reset at 2026-11-30 05:00:00", "1308"), IN_TEXT),
    ("zhipu", 429, error("今日调用次数已达上限", "1304"), NEXT_DAY),
    ("baidu_ai_search", 429, plain(code="QUOTA_USER_DAILY_REQUEST", message="quota"), NEXT_DAY),
    ("baidu_ai_search", 200, plain(error_code=17, error_msg="Open api daily request limit reached"), NEXT_DAY),
    ("wechat_mp", 200, plain(errcode=45009, errmsg="reach max api daily quota limit"), NEXT_DAY),
    ("openai_compatible", 429, error("Rate limit reached on tokens per day (TPD): Limit 100. Please try again in 20m5s"), "reschedule:1205"),
    ("gemini", 429, plain(error={"code": 429, "message": "Quota exceeded", "status": "RESOURCE_EXHAUSTED",
     "details": [{"violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}]}]}), NEXT_DAY),
    ("unsplash", 429, b"Rate Limit Exceeded", "reschedule:next_hour"),
    ("pexels", 429, b"", "reschedule:next_hour"),
]  # fmt: skip
RATE = [
    ("openai", 429, {"retry-after": "7"}, error("Rate limit reached"), "retry_after:7"),
    ("openai", 429, {"retry-after": "0.25"}, error("Rate limit reached"), "retry_after:0.25"),
    ("openai", 429, {"retry-after": "300"}, error("Rate limit reached"), "reschedule:300"),
    ("openai", 429, {"retry-after": "-1"}, error("Rate limit reached"), BACKOFF),
    ("openai", 429, {}, error("Rate limit reached for requests. Please try again in 20s."), "retry_after:20"),
    ("openai", 429, {}, plain(error={"message": "slow down", "retry_after": 3}), "retry_after:3"),
    ("gemini", 429, {}, plain(error={"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Quota exceeded for metric per minute",
     "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "46s"}]}), "retry_after:46"),
    ("dashscope_native", 429, {}, plain(code="Throttling.AllocationQuota", message="Allocated quota exceeded, please increase your quota limit."), BACKOFF),
    ("dashscope", 429, {}, error("You exceeded your current requests list", "limit_requests"), BACKOFF),
    ("volcengine_ark", 429, {}, error("busy", "InflightBatchsizeExceeded"), BACKOFF),
    ("volcengine_ark", 429, {}, error("ramp", "RequestBurstTooFast"), BACKOFF),
    ("zhipu", 429, {}, error("您的账户已达到速率限制，请您控制请求频率", "1303"), BACKOFF),
    ("hunyuan", 200, {}, error("请求太频繁，请在 3 秒后重试", "2003"), "retry_after:3"),
    ("generic_http", 200, {}, plain(error_code=18, error_msg="Open api qps request limit reached"), BACKOFF),
    ("wechat_mp", 200, {}, plain(errcode=45011, errmsg="api minute-quota reach limit"), BACKOFF),
    ("webhook", 429, {"retry-after": "60"}, b"", "retry_after:60"),
    ("directus", 429, {}, plain(errors=[{"message": "Too many requests", "extensions": {"code": "REQUESTS_EXCEEDED"}}]), BACKOFF),
    ("anthropic", 429, {"x-should-retry": "true", "retry-after": "5"}, error("rate", None, "rate_limit_error"), "retry_after:5"),
    ("anthropic", 200, SSE, sse({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}), BACKOFF),
]  # fmt: skip
CONTENT = [
    ("deepseek", 400, error("Content Exists Risk", "invalid_request_error")),
    ("moonshot", 400, error("The request was rejected because it was considered high risk", None, "content_filter")),
    ("zhipu", 400, error("系统检测到输入或生成内容可能包含不安全或敏感内容", "1301")),
    ("zhipu", 200, chat("", "sensitive")),
    ("openai", 400, error("Your request was rejected as a result of our safety system.", "content_policy_violation")),
    ("openai", 200, plain(id="r", object="response", status="incomplete", output=[], incomplete_details={"reason": "content_filter"})),
    ("openrouter_like", 403, error("Your input was flagged", 403)),
    ("gemini", 200, plain(promptFeedback={"blockReason": "SAFETY"})),
    ("gemini", 200, plain(candidates=[{"finishReason": "PROHIBITED_CONTENT"}])),
    ("anthropic", 200, plain(id="m", type="message", content=[], stop_reason="refusal")),
    ("dashscope_image", 200, plain(output={"task_id": "t", "task_status": "FAILED", "code": "DataInspectionFailed", "message": "green net"})),
    ("volcengine_ark", 400, error("x", "SensitiveContentDetected.SevereViolation")),
    ("volcengine_ark_image", 200, plain(data=[{"error": {"code": "OutputImageSensitiveContentDetected", "message": "x"}}])),
    ("hunyuan_native", 200, plain(Response={"Error": {"Code": "OperationDenied.TextIllegalDetected", "Message": "x"}})),
    ("wechat_mp", 200, plain(publish_id=1, publish_status=4)),
]  # fmt: skip
OTHER = [
    ("zhipu", 400, {}, error("Prompt exceeds max length", "1261"), SHORTER),
    ("openai", 400, {}, error("prompt is too long: 210000 tokens > 200000 maximum", "invalid_request_error"), SHORTER),
    ("anthropic", 413, {}, error("Request exceeds the maximum size", None, "request_too_large"), SHORTER),
    ("dashscope_native", 400, {}, plain(code="InvalidParameter", message="Range of input length should be [1, 6000]"), SHORTER),
    ("baidu_ai_search", 400, {}, error("the max input characters is 20000", "characters_too_long"), SHORTER),
    ("openai", 429, {}, error("Request too large for m on tokens per min (TPM): Limit 30000, Requested 40000. The input or output tokens must be reduced in order to run successfully."), SHORTER),
    ("openai", 400, {}, error("Unsupported value: 'temperature' does not support 0.7 with this model. Only the default (1) value is supported.", "unsupported_value"), "retry_with_change:drop_temperature"),
    ("openai", 400, {}, error("Unsupported parameter: 'top_p' is not supported with this model.", "unsupported_parameter"), "retry_with_change:drop_top_p"),
    ("openai", 400, {}, error("Unknown parameter: 'web_search_options'.", "unknown_parameter"), FAIL),
    ("dashscope", 400, {}, error("This model only support stream mode, please enable the stream parameter"), "retry_with_change:stream"),
    ("openai", 404, {}, error("The model `m` does not exist", "model_not_found"), FAIL),
    ("openai", 401, {}, error("Incorrect API key provided: sk-abc", "invalid_api_key"), FAIL),
    ("gemini", 400, {}, error("API key not valid. Please pass a valid API key.", 400), FAIL),
    ("volcengine_ark", 404, {}, error("The model is not open", "ModelNotOpen"), FAIL),
    ("ghost", 401, {}, plain(errors=[{"message": "Invalid token: jwt expired", "code": "INVALID_JWT"}]), REFRESH),
    ("wechat_mp", 200, {}, plain(errcode=42001, errmsg="access_token expired"), REFRESH),
    ("directus", 403, {}, plain(errors=[{"message": "Invalid token.", "extensions": {"code": "INVALID_TOKEN"}}]), FAIL),
    ("openai_compatible", 200, {}, chat("half", "length"), "retry_with_change:raise_max_tokens"),
    ("openai_compatible", 200, {}, chat("", "length", reasoning_content="hm"), "retry_with_change:raise_max_tokens_or_disable_thinking"),
    ("openai_compatible", 200, {}, chat(None), "retry_fast"),
    ("openai_compatible", 200, SSE, sse({"choices": [{"index": 0, "delta": {"content": "half"}}]}), BACKOFF),
    ("openai_compatible", 200, HTML, b"<!DOCTYPE html><title>Login</title>", BACKOFF),
    ("openai_compatible", 200, {}, gzip.compress(chat("hi"), mtime=0), ACCEPT),
    ("openai_compatible", 200, {}, b"\xef\xbb\xbf\n\n" + chat("hi"), ACCEPT),
    ("openai_compatible", 200, {}, plain(choices=[{"index": 0, "message": {"content": ""}, "finish_reason": "error"}]), BACKOFF),
    ("openai_compatible", 503, {}, error("当前分组上游负载已饱和，请稍后再试"), BACKOFF),
    ("openai", 503, {"retry-after": "30"}, error("overloaded", "server_is_overloaded"), "retry_after:30"),
    ("llm_api_edge", 524, HTML, b"<title>524: A timeout occurred</title>", BACKOFF),
    ("llm_api_edge", 403, HTML, b"<title>Just a moment...</title>", FAIL),
    ("deepseek", 429, {}, gzip.compress(error("Insufficient Balance"), mtime=0), PAUSE),
    ("anthropic", 200, {}, plain(id="m", type="message", content=[{"type": "text", "text": "so"}], stop_reason="pause_turn"), "continue_turn"),
    ("anthropic", 200, {}, plain(id="m", type="message", content=[{"type": "text", "text": "so"}], stop_reason="max_tokens"), "retry_with_change:raise_max_tokens"),
    ("openai", 200, {}, plain(id="r", object="response", status="in_progress", output=[]), "poll"),
    ("openai", 200, {}, plain(id="r", object="response", status="failed", error={"code": "rate_limit_exceeded", "message": "slow"}), BACKOFF),
    ("openai", 200, {}, plain(id="r", object="response", status="incomplete", output=[{"type": "message", "content": [{"type": "output_text", "text": "half"}]}], incomplete_details={"reason": "max_output_tokens"}), "retry_with_change:raise_max_tokens"),
    ("moonshot", 200, {}, chat("", "tool_calls", tool_calls=[{"id": "c", "function": {"name": "web_search", "arguments": "{}"}}]), "continue_turn"),
    ("moonshot", 200, {}, plain(id="f", object="fiber", status="failed", context={}), BACKOFF),
    ("dashscope_image", 200, {}, plain(output={"task_id": "t", "task_status": "RUNNING"}), "poll"),
    ("dashscope_image", 200, {}, plain(output={"task_id": "t", "task_status": "SUCCEEDED", "results": [{"code": "E", "message": "x"}, {"url": "https://e.example/x.png"}]}), ACCEPT),
    ("gemini", 200, {}, plain(candidates=[{"finishReason": "MALFORMED_FUNCTION_CALL"}]), "retry_fast"),
    ("gemini", 504, {}, error("Deadline expired", 504), BACKOFF),
    ("gemini", 403, {}, error("Permission denied on resource", 403), FAIL),
    ("wordpress", 502, HTML, b"<title>502 Bad Gateway</title>", LOOK),
    ("wordpress", 200, {}, b"[]", LOOK),
    ("wordpress", 404, {}, plain(code="rest_no_route", message="No route was found", data={"status": 404}), FAIL),
    ("wordpress", 403, {}, plain(code="rest_cannot_publish", message="Sorry", data={"status": 403}), FAIL),
    ("wordpress", 400, {}, plain(code="term_exists", message="exists", data={"status": 400, "term_id": 4}), ACCEPT),
    ("wordpress", 201, HTML, b"<b>Notice</b>: x\n" + plain(id=7, status="publish", slug="a"), ACCEPT),
    ("wordpress_media", 503, {}, b"busy", BACKOFF),
    ("webhook", 410, {}, b"", "disable_endpoint"),
    ("webhook", 308, {"location": "https://o.example"}, b"", BACKOFF),
    ("webhook", 504, {}, b"", BACKOFF),
    ("webhook_in", 200, {"webhook-id": "m"}, plain(type="post.published"), FAIL),
    ("halo", 400, {}, plain(title="Bad Request", detail="spec.slug must not be blank"), FAIL),
    ("halo", 500, {}, plain(title="Internal", detail="x"), LOOK),
    ("strapi", 201, {}, plain(data={"id": 1, "documentId": "d", "publishedAt": None}), ACCEPT),
    ("strapi", 400, {}, plain(data=None, error={"status": 400, "name": "ValidationError", "message": "This attribute must be unique"}), LOOK),
    ("devto", 422, {}, plain(error="Title is too short", status=422), FAIL),
    ("devto", 429, {"retry-after": "30"}, plain(error="Rate limit reached, try again in 30 seconds"), "retry_after:30"),
    ("directus", 413, {}, plain(errors=[{"message": "too large", "extensions": {"code": "CONTENT_TOO_LARGE"}}]), FAIL),
    ("wechat_mp", 200, {}, plain(errcode=-1, errmsg="system error"), BACKOFF),
    ("wechat_mp", 200, {}, plain(publish_id=1, publish_status=1), "poll"),
    ("wechat_mp", 200, {}, plain(media_id="m"), ACCEPT),
    ("typecho", 200, {}, b"<methodResponse><fault><value><struct><member><name>faultCode</name><value><int>403</int></value></member><member><name>faultString</name><value><string>no</string></value></member></struct></value></fault></methodResponse>", FAIL),
    ("typecho", 200, {}, b"<?xml version='1.0'?><methodResponse><params><param><value><string>7</string></value></param></params></methodResponse>", ACCEPT),
    ("typecho", 502, HTML, b"<title>502 Bad Gateway</title>", LOOK),
    ("indexnow", 422, {}, b"", FAIL),
    ("indexnow", 429, {}, b"", BACKOFF),
    ("unsplash", 401, {}, plain(errors=["OAuth error: The access token is invalid"]), FAIL),
    ("unsplash", 403, {}, plain(errors=["Invalid scope"]), FAIL),
    ("dashscope_native", 400, {**SSE}, b'id:1\nevent:error\n:HTTP_STATUS/400\ndata:{"code":"DataInspectionFailed","message":"x"}\n\n', REFUSE),
]  # fmt: skip
CASES: list[tuple[str, int, dict[str, str], bytes, str]] = (
    [(service, status, {}, body, PAUSE) for service, status, body in MONEY]
    + [(service, status, {}, body, REFUSE) for service, status, body in CONTENT]
    + [(service, status, {}, body, handling) for service, status, body, handling in RESET]
    + RATE
    + OTHER
)


@pytest.mark.parametrize(("service", "status", "headers", "body", "handling"), CASES)
def test_a_reply_of_a_known_kind_is_handled_as_its_kind(
    service: str, status: int, headers: dict[str, str], body: bytes, handling: str
) -> None:
    found = judgement(service, HttpReply(status, headers, body, NOW))
    assert found.handling == handling, found
