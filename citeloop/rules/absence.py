"""Absence clauses: places where an answer names somebody only to say that nothing was found.

Patterns are written over folded text (lower case, simplified, ASCII punctuation); X stands for the name.
"""

import re

_NAME = "\x00"
_REACH = 160
"""No clause is longer to either side of the name."""

_ZH_PARTS = {
    "info": "(?:信息|资料|消息|内容|结果|数据|记录|介绍|报道|资讯|词条|网页|文章|条目|线索|说明|提及)",
    "no": "(?:没有?|未能?|并未|并无|无法|不能|未曾|尚未|暂未|没能|未有|暂无|尚无|无|缺乏|缺少)",
    "where": r"(?:在[^,。;]{1,20}?[中里上内])?",
    "find": "能?够?(?:找到|查到|查询到|检索到|搜索到|搜到|查找到|发现|获取到?|获得|收集到|看到|搜寻到|查阅到)",
    "cannot_find": "(?:找|查|搜|搜索|检索|查询)不到",
    "show": "(?:提到|提及|出现|包含|涉及|收录|显示|列出|检索到|搜索到|找到|查到)",
    "unknown": "(?:不了解|不太了解|不熟悉|不知道|不清楚|没听说过|没有听说过|未听说过|无法识别)",
    "about": "(?:关于|有关|对于|针对|涉及|提及|提到|至于)",
    "called": "(?:一[家个款])?(?:名为|名叫|叫做?|称为)",
    "qualifier": (
        "(?:的|相关|有关|任何|具体|详细|公开|可靠|有效|直接|最新|更多|官方|明确|足够|权威|确切|这家|这个|这款|该"
        "|公司|品牌|产品|搜索|检索| )"
    ),
    "topic": "(?:{qualifier}|{info}|本身|而言|来说)",
    "fault": "(?![^,。;]{0,20}(?:缺点|问题|不足|对手|替代|更))",
    "open": r"[\"“'『「《 ]*",
    "close": r"[\"”'』」》 ]*",
    "gap": r"[^,。;比]{0,16}?",
    "short": r"[^,。;]{0,8}?",
    "before": r"(?:[^,。;比]{0,24}[、和与及或])?",
    "after": r"(?:\s*[、和与及或跟]\s*[^,。;、和与及或的]{1,15})*",
}
_ZH = (
    # 没有找到关于 X 的相关信息; 未找到 X; 搜不到名为 X 的公司的资料
    "(?:{no}{where}{find}|{cannot_find}){gap}{about}?{before}{called}?{open}X{after}{close}{qualifier}*(?:{info}|$|[)])",
    # 没有关于 X 的信息; 暂无 X 的资料
    "{no}{gap}{about}?{before}{open}X{after}{close}{qualifier}*{info}",
    # 关于 X 没有找到任何资料
    "{about}{open}X{after}{close}{topic}*,?{gap}(?:{no}{where}{find}|{cannot_find}|{no}{short}{info}){fault}",
    # 搜索结果中没有提到 X
    "{no}{short}{show}过?{about}?{open}X{after}{close}{qualifier}*(?:{info}|$|[)])",
    # X 没有出现在搜索结果中; X 未被提及
    "X{after}{close}(?:也|都|均|则|并|还)*{where}(?:都|均)?{no}(?:出现|被{short}{show}|检索到|搜索到|查到|找到)",
    # X: 未找到相关信息, also in brackets
    r"X{close}[:(|—–-]+ ?(?:抱歉,?|目前|暂时)?{short}(?:{no}{where}{find}|{cannot_find}|{no}{qualifier}*{info})",
    # X 的信息未找到
    "X{close}{qualifier}*{info}{short}(?:{no}{find}|{cannot_find}|暂无|不存在)",
    # 我不了解 X; 对 X 不熟悉; 没听说过 X
    "{unknown}{open}X{after}{close}{qualifier}*(?:{info}|$|是什么|是谁|是哪)",
    "对{open}X{after}{close}{qualifier}*[并还]?{unknown}",
    # 不存在名为 X 的公司
    "(?:不存在|并?没有){called}{open}X",
)

_EN_PARTS = {
    "info": (
        "(?:information|info|details?|data|results?|references?|mentions?|records?|sources?|anything|something|content"
        "|coverage|reviews?|documentation|much|entry|entries|listings?|articles?|news|material)"
    ),
    "not": (
        r"(?:(?:could|can|did|do|does|was|were|am|is|are|have|has|had)(?: ?not|n't)|cannot|unable to|failed to"
        r"|not able to|never)"
    ),
    "none": "(?:no|not any|not enough|little|insufficient|lack of|lacks?|zero)",
    "has": "(?:found|have|is|was|are)",
    "present": "(?:mentioned|listed|found|(?:(?:included|covered) )?in (?:the|my|these) {words}{results})",
    "results": "(?:results|sources|articles)",
    "find": "(?:find|found|locate|see|identify|retrieve|come across|turn up|have|get|provide|contain|return|uncover)",
    "seek": "(?:find|found|locate|identify)",
    "show": "(?:mention|include|list|reference|contain|cover|discuss)(?:ed)?",
    "about": ("(?:about|on|for|regarding|concerning|related to|relating to|of|mentioning|referencing|specific to)"),
    "kind": "(?:company|brand|product|tool|service|firm|vendor|platform|app|provider)",
    "words": r"(?:\w+ ){0,4}?",
    "gap": r"[^.;!?\x00]{0,60}?",
    "others": r"(?:[^.;!?\x00]{0,60}?\b(?:and|or|nor) |[^.;!?\x00]{0,60}?, )?",
    "open": r"(?:(?:a|an|the|any) )?(?:{kind} )?(?:called |named |known as )?[\"“']?",
    "tail": r"(?!'s \w)[\"”']?",
    "end": r"[\"”']?\s*(?:$|[.;!?,)\n]|\b(?:in|on|from|among|within|anywhere|or|and|at all|online|by name)\b)",
}
_EN = (
    # I couldn't find any information about X
    r"{not} {words}{find} {gap}\b{info}\b{gap}\b{about} {others}{open}X{tail}",
    # there is no reliable data on X
    r"\b{none} {words}{info}\b{gap}\b{about} {others}{open}X{tail}",
    # I was unable to find X
    r"{not} {words}{seek} (?:any )?{others}{open}X{end}",
    # the search results do not mention X
    r"{not} {words}{show} {others}{open}X{end}",
    r"\bno (?:mention|trace|sign|record)s? of {others}{open}X",
    # I'm not familiar with X
    r"\b(?:not|n't) {words}(?:aware of|familiar with|heard of|know (?:of|about|what|who)) {others}{open}X{tail}",
    r"\b(?:unfamiliar with|unaware of) {others}{open}X{tail}",
    # X does not appear in the results; X was not mentioned
    r"X{tail} (?:does ?not|doesn't|did ?not|didn't|do not|don't) {words}(?:appear|show up|come up|turn up)",
    r"X{tail} (?:is|was|were|are)(?: ?not|n't) {words}{present}",
    # as for X, I found no information
    r"\b(?:about|regarding|on|as for) {open}X{tail}, {words}(?:{not} {words}{find}|{has} no)\b(?! an? better)",
    # X: no information found
    r"X[\"”']? ?[:|(—–-]+ ?(?:sorry,? )?(?:i )?(?:{not} {find} |no {words}{info}\b|not (?:found|mentioned))",
    # there is no company called X; I found nothing about X
    r"\bno {kind} (?:called|named|known as) {open}X",
    r"\b(?:nothing|none) {words}(?:about|on|for|regarding) {others}{open}X{tail}",
)
_DENIAL = re.compile(
    "[没未无不缺]|no(?:t|ne|(?![a-z]))|n't|never|unable|unaware|unfamiliar|failed|little|insufficient|lack|zero"
)
"""Each pattern needs one of these words on one side of the name; few sentences have any."""

_CONTRAST = re.compile(r"\b(?:but|however|although|though|while|whereas|yet|instead)\b|但是?|不过|然而|而是|反而|却")


def _compile(patterns: tuple[str, ...], parts: dict[str, str]) -> list[re.Pattern[str]]:
    def fill(pattern: str) -> str:
        return re.sub(r"\{([a-z_]+)\}", lambda match: fill(parts[match.group(1)]), pattern)

    return [re.compile(fill(pattern).replace("X", _NAME)) for pattern in patterns]


_PATTERNS = (*_compile(_ZH, _ZH_PARTS), *_compile(_EN, _EN_PARTS))


def is_absence(sentence: str, start: int, end: int) -> bool:
    """Whether the name at `sentence[start:end]` (folded text) stands in a clause that found nothing about it.

    A contrast (`but`, `但`) ends the clause; `不推荐 X`, `no better choice than X` and `X 不如 Y` name X.
    """
    before, after = sentence[max(0, start - _REACH) : start], sentence[end : end + _REACH]
    if not (_DENIAL.search(before) or _DENIAL.search(after)):
        return False
    contrasts = [match.start() for match in _CONTRAST.finditer(before)]
    contrast = _CONTRAST.search(after)
    before = before[contrasts[-1] :] if contrasts else before
    after = after[: contrast.start()] if contrast else after
    clause = before + _NAME + after.rstrip(" \n。.!?;")
    return any(pattern.search(clause) for pattern in _PATTERNS)
