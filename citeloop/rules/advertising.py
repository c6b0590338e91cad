"""Words that advertising law or plain honesty forbids, with the harmless uses of the same characters left out.

Chinese list after Article 9 of the Advertising Law of the PRC (绝对化用语) and the usual platform lists.
"""

import re
from dataclasses import dataclass

from citeloop.models.work import Severity


@dataclass(frozen=True)
class Term:
    pattern: re.Pattern[str]
    severity: Severity


def _term(pattern: str, severity: Severity) -> Term:
    return Term(re.compile(pattern, re.IGNORECASE), severity)


_COUNTED = "步次章节个种类行列方手句段版届天年层页条项份批轮篇讲课期遍眼印"
TERMS = (
    _term(
        "国家级|世界级|宇宙级|国家领导人|顶级|顶尖|极品|独一无二|绝无仅有|史无前例|前无古人|空前绝后|万能|无敌"
        "|全网最低|最低价|零风险|填补国内空白|驰名商标|包治百病|根治|遥遥领先|行业领先|全球领先|世界领先|国际领先",
        Severity.BLOCK,
    ),
    _term(
        "最佳(?!实践|匹配|适配|近似|估计|拟合)|最优秀|最顶|最强|最先进|最权威|最专业|最好(?=的|用)|最受欢迎",
        Severity.BLOCK,
    ),
    _term(
        "(?:全国|全球|全网|世界|国内|行业|业内|业界|销量|排名|市场|口碑|中国|亚洲)第一(?!个|次|批)|第一(?:品牌|大|梯队)",
        Severity.BLOCK,
    ),
    _term(
        "保证(?:有效|成功|收益|赚|效果|治愈|盈利|排名|收录)|(?:100%|百分之百|百分百)(?:有效|满意|成功|保证|安全|治愈)",
        Severity.BLOCK,
    ),
    _term(
        "最(?!佳|优秀|顶|强|先进|权威|专业|受欢迎|近|后|终|初|末|多|少|小|低|短|长|新|早|晚|坏|差|大(?!的|规模|型)"
        "|高(?!级|端|品质)|好|优(?:化|解|值|的?路径)|左|右|上|下|内|外|前|底|邻|热(?:点|门)?数据)",
        Severity.FLAG,
    ),
    _term(
        f"(?<![全国球网界业量名场碑洲])第一(?!品牌|大|梯队|[{_COUNTED}]|部分|阶段|季度|时间|性|人称|[，,、：:；是]|\\s*\\d)",
        Severity.FLAG,
    ),
    _term("(?<=[\u4e00-\u9fff])第一(?=[，,、；])", Severity.FLAG),
    _term(
        "唯一(?!标识|标志|键|索引|约束|性|主键|ID|名|值|的?(?:标识|键|名称|值|ID|编号|主键))|首选|首家|首创|独家|冠军|之王|王者"
        "|极致|终极|完美|颠覆|绝对(?!路径|值|时间|地址|误差|位置|引用)|永久(?!代|链接|保存|存储|删除|固定)|百分百|百分之百",
        Severity.FLAG,
    ),
    _term(
        r"(?:\b(?:world'?s|industry'?s)[ -](?:best|leading|first|fastest|most|number one)\b|\bnumber one\b"
        r"|\bno\. ?1\b|\bbest[ -]in[ -]class\b|\bunbeatable\b"
        r"|\bguaranteed?\s+(?:results?|success|roi|rankings?)\b|\brisk[- ]free\b"
        r"|\b100% (?:safe|effective|guaranteed|secure)\b)|#(?<!\w#)1\b",
        Severity.FLAG,
    ),
    _term(
        r"\bthe (?:very )?best\b(?! practices?| effort)|\b(?:market|industry)[ -]leading\b|\bcutting[ -]edge\b"
        r"|\brevolutionary\b|\bgame[ -]chang\w+|\bworld[ -]class\b"
        r"|\bthe (?:fastest|most (?:advanced|powerful|popular|trusted))\b"
        r"|\bunmatched\b|\bunrivall?ed\b",
        Severity.NOTE,
    ),
)
