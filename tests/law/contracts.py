"""A contract of our own and its amendments, in the words of several drafters."""

from __future__ import annotations

CONTRACT = """HOSTING AGREEMENT

This Hosting Agreement is made as of March 1, 2018 between Quillfeather Systems, Inc., a Delaware corporation
("Quillfeather"), and Marrowdale Clinics LLC ("Customer").

1. Services
1.1 Scope. Quillfeather shall host the Software for Customer in its data centre at Dunmore.

2. Fees
2.1 Monthly Fee. Customer shall pay Quillfeather a monthly fee of $4,000 for the hosting services.
2.2 Late Payment. An amount that is overdue bears interest at the rate of five percent (5%) per year.

3. Term
3.1 Renewal. This Agreement renews for periods of one (1) year each unless a party gives notice of ninety (90) days.

4. General
4.1 Governing Law. This Agreement is governed by the laws of the State of Ohio.
"""

FIRST = """AMENDMENT NO. 1
to the Hosting Agreement

This Amendment No. 1 to the Hosting Agreement dated as of March 1, 2018 between Quillfeather Systems, Inc. and
Marrowdale Clinics LLC (the "Agreement") is made and entered into as of June 1, 2019.

1. Fee. Section 2.1 of the Agreement is hereby deleted in its entirety and replaced with the following:
"2.1 Monthly Fee. Customer shall pay Quillfeather a monthly fee of $5,500 for the hosting services."

2. Law. The reference to "Ohio" in Section 4.1 of the Agreement is hereby deleted and replaced with "Vermont".

3. No Other Changes. Except as amended hereby, the Agreement remains in full force and effect.
"""

SECOND = """SECOND AMENDMENT TO HOSTING AGREEMENT

This Second Amendment, effective as of January 15, 2021, amends that certain Hosting Agreement between Quillfeather
Systems, Inc. and Marrowdale Clinics LLC dated March 1, 2018 (the "Agreement").

A. The parties hereby agree to remove Section 2.1 in its entirety and replace it with the following:
"2.1 Monthly Fee. Customer shall pay Quillfeather a monthly fee of $7,250 for the hosting services."

B. Section 2.2 of the Agreement is hereby deleted.

C. The last sentence of Section 3.1 of the Agreement is amended to read as follows: "Notice is given by courier."

IN WITNESS WHEREOF the parties have signed this Second Amendment.
"""

OTHER = (
    CONTRACT.replace("Quillfeather Systems, Inc.", "Osprey Data Corp.")
    .replace("Marrowdale Clinics LLC", "Tern Ltd")
    .replace("$4,000", "$3,333")
)
